"""Online classification and regression within a budget."""
