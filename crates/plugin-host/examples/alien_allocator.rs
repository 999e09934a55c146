//! A good plugin with an allocator of its own: what it hands out, no other allocator can free.

mod plugin;

use std::alloc::{GlobalAlloc, Layout, System};

const NAME: &str = "alien-allocator";

/// Each allocation begins some bytes into one of the system's, so that the system's own `free` would end the process.
struct Shifted;

#[global_allocator]
static ALLOCATOR: Shifted = Shifted;

fn shifted(layout: Layout) -> (Layout, usize) {
    let shift = layout.align().max(64);
    let larger = Layout::from_size_align(layout.size() + shift, layout.align());
    (larger.expect("no allocation is that large"), shift)
}

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: an allocation is a part of one of the system's, of the size and alignment that were asked for; `dealloc` takes the
// same shift back.
unsafe impl GlobalAlloc for Shifted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (larger, shift) = shifted(layout);
        // SAFETY: the layout has a size, because the shift has. What is added lies within.
        unsafe {
            let start = System.alloc(larger);
            if start.is_null() { start } else { start.add(shift) }
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let (larger, shift) = shifted(layout);
        // SAFETY: it came from `alloc` with this layout.
        unsafe { System.dealloc(pointer.sub(shift), larger) }
    }
}

#[abi_stable::export_root_module]
fn root() -> offshoot_plugin_abi::PluginRef {
    plugin::plugin()
}
