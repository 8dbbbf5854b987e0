"""The methods that ``--method`` names: how each is made, and how its regularisation is chosen."""
