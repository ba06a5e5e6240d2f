"""Modules ``schema`` and ``opnode_tensor_info``, which programs import to register their own readers."""
