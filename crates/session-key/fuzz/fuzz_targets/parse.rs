//! Any text is a key that prints as itself or an error that can be shown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use offshoot_session_key::{SessionKey, parent_subagent_key, subagent_depth};

fuzz_target!(|input: &str| {
    match SessionKey::parse(input) {
        Ok(key) => {
            assert_eq!(SessionKey::parse(key.as_str()).as_ref(), Ok(&key));
            assert_eq!(key.ancestors().count(), key.depth());
            assert_eq!(subagent_depth(Some(input)), key.depth());
            for above in key.ancestors() {
                assert_eq!(SessionKey::parse(above.as_str()).as_ref(), Ok(&above));
            }
        }
        Err(error) => {
            assert!(error.position <= input.trim().len());
            assert_eq!(error.report().split('\n').count(), 3);
            assert_eq!(parent_subagent_key(Some(input)), None);
        }
    }
});
