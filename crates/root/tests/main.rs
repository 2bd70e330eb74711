//! Roots and images of programs, made and read back.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod images;
mod interpreters;
mod limits;
mod roots;
