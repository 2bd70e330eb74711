//! Tests that make roots and images of programs and read them back.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod images;
mod interpreters;
mod limits;
mod roots;
