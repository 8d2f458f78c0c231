"""presk_rel: the relational compiler of Presk. Importing this package imports nothing heavy."""

__version__ = "0.1.0"
