//! Bounded places where a trial runs: the exact arena's emulator, guest image and snapshots.
