//! A library that ends the process that opens it, before it can be asked for anything.

mod plugin;

const NAME: &str = "aborts";

#[used]
#[expect(
    unsafe_code,
    reason = "what runs when a library is opened is named in a section of its own"
)]
// SAFETY: the section holds pointers to functions of this form, and nothing else is put there.
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    // Where it is not read, it ends all the same.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), b"something is wrong in here\n");
    std::process::abort()
}

#[abi_stable::export_root_module]
fn root() -> offshoot_plugin_abi::PluginRef {
    plugin::plugin()
}
