//! Tells the command where the SDK of plugins is: beside it in a checkout, and nowhere in a packaged crate, which stands
//! alone.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin-sdk");
    if sdk.join("Cargo.toml").is_file() {
        println!("cargo::rustc-env=OFFSHOOT_BUILT_BESIDE_SDK={}", sdk.display());
    }
}
