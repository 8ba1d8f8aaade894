"""What every process stands on: settings, clock, connections, identities, logs."""
