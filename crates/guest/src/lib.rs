//! What runs as PID 1 of a guest: prepares swap and memory, applies settings, supervises the scenario.
