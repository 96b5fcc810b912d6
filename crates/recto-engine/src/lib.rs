//! Around the pure compiler: stores that keep logs and decisions, and drivers for providers.
//!
//! Nothing is here yet but the direction of the arrows: this crate may depend on `recto`, and never the other way.

pub use recto;
