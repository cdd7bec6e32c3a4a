"""Inference with ONNX networks, transformers and chat servers, for judges and for `rag`."""
