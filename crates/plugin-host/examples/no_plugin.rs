//! A library that is no plugin.

/// Does nothing.
#[expect(unsafe_code, reason = "a library exports something")]
// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub extern "C" fn offshoot_test_nothing() {}
