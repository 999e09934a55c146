//! The meter between real clients of HTTP and providers that answer by rules, or do not answer as they should.

mod faults;
mod house;
mod passing;
mod who;
