//! What this machine can do for each arena, and what would mend what it cannot.
