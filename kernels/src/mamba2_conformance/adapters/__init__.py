"""Adapters: how the kernels of one layout are loaded from a folder and called. Chosen by signature, never by date."""
