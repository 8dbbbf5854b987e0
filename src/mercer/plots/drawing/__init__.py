"""What all displays share: axes, colours, planes through the rows, and what models and kernels say of them."""
