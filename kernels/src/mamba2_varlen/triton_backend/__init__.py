"""The operators as Triton kernels. Importing this package imports Triton; nothing outside it does."""
