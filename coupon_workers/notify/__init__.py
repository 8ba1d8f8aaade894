"""Telling of what happened: the outbox routed to webhooks and users' channels, delivered, retried and logged."""
