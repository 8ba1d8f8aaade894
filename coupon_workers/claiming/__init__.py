"""Claiming: the gate in Redis, the pending stream, settling to PostgreSQL, preheating."""
