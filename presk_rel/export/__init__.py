"""Readable PyTorch from the typed program (spec: "PyTorch export"): `torch_file.export_pytorch`."""
