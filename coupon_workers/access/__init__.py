"""API keys: who may call, with which scope."""
