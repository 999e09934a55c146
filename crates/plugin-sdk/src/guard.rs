//! No panic leaves a plugin: each entry is caught, with what was said and where.
//!
//! A panic that crossed into the host would end it. So every function that the host calls runs in [`catch`], and every
//! future of an author in [`Guarded`].

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt::Write;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::pin::Pin;
use std::sync::{Once, OnceLock};
use std::task::{Context, Poll};

use offshoot_plugin_abi::AbiError;
use pin_project_lite::pin_project;

use crate::{Level, PluginHost};

/// A panic that was caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Panicked {
    message: String,
    place: Option<String>,
}

/// Runs it; a panic is a value.
pub(crate) fn catch<T>(run: impl FnOnce() -> T) -> Result<T, Panicked> {
    install_hook();
    GUARDED.with(|depth| depth.set(depth.get() + 1));
    let outcome = panic::catch_unwind(AssertUnwindSafe(run));
    GUARDED.with(|depth| depth.set(depth.get() - 1));
    outcome.map_err(|payload| {
        let message = text_of(&*payload);
        // A payload may panic when it is dropped, and what it panics with may as well: then it stays.
        if let Err(worse) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(worse);
        }
        let place = PLACE.with(RefCell::take);
        Panicked { message, place }
    })
}

/// As [`catch`], for what answers with an error of the interface.
pub(crate) fn answer<T>(run: impl FnOnce() -> Result<T, AbiError>) -> Result<T, AbiError> {
    catch(run).unwrap_or_else(|panicked| Err(panicked.into()))
}

pin_project! {
    /// A future whose panics are values.
    pub(crate) struct Guarded<F> {
        // None once it has answered.
        #[pin]
        inner: Option<F>,
    }

    impl<F> PinnedDrop for Guarded<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut inner = this.project().inner;
            // No caller is left that could be told of a panic.
            let _ = catch(|| inner.set(None));
        }
    }
}

impl<F: Future> Guarded<F> {
    pub(crate) fn new(future: F) -> Self {
        Self { inner: Some(future) }
    }
}

impl<F: Future> Future for Guarded<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut inner = self.project().inner;
        let future =
            inner.as_mut().as_pin_mut().expect("a future that has answered is not polled again");
        let polled = catch(|| future.poll(cx));
        if let Ok(Poll::Pending) = polled {
            return Poll::Pending;
        }
        let dropped = catch(|| inner.set(None));
        match (polled, dropped) {
            (Ok(Poll::Ready(_)), Err(panicked)) | (Err(panicked), _) => Poll::Ready(Err(panicked)),
            (Ok(Poll::Ready(output)), Ok(())) => Poll::Ready(Ok(output)),
            (Ok(Poll::Pending), _) => Poll::Pending,
        }
    }
}

/// Drops what is an author's. No caller is left that could be told of a panic.
pub(crate) fn drop_quietly<T>(value: T) {
    let _ = catch(|| drop(value));
}

thread_local! {
    /// The number of guards between this point and the thread's beginning.
    static GUARDED: Cell<u32> = const { Cell::new(0) };
    /// The place of the last panic under a guard.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Everything that this thread will ever do is under a guard: no caller is there to catch a panic, but it is not printed.
pub(crate) fn guard_thread() {
    install_hook();
    GUARDED.with(|depth| depth.set(depth.get() + 1));
}

/// To whom panics are told.
pub(crate) fn tell_panics_to(host: PluginHost) {
    HOST.get_or_init(|| host);
}

static HOST: OnceLock<PluginHost> = OnceLock::new();

/// Under a guard a panic is noted, told to the host's log and not printed. Elsewhere, in a thread that an author started,
/// it is printed as always.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let otherwise = panic::take_hook();
        panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            if GUARDED.with(Cell::get) > 0 {
                let place = info.location().map(ToString::to_string);
                if let Some(host) = HOST.get() {
                    let message = text_of(info.payload());
                    let at = place.as_deref().unwrap_or("an unknown place");
                    host.log(Level::Error, "panic", &format!("{message} at {at}"));
                }
                PLACE.with(|last| *last.borrow_mut() = place);
            } else {
                otherwise(info);
            }
        }));
    });
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a text".to_owned()
    }
}

impl From<Panicked> for AbiError {
    fn from(Panicked { mut message, place }: Panicked) -> Self {
        let mut error = Self::new(Self::PANICKED, "");
        if let Some(place) = place {
            write!(message, " at {place}").expect("writing into a string cannot fail");
            error.detail_json = serde_json::json!({ "v": 1, "place": place }).to_string().into();
        }
        error.message = message.into();
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_value_with_its_place() {
        let error = answer::<()>(|| panic!("no {}", "way")).expect_err("it panicked");
        assert_eq!(error.code, AbiError::PANICKED);
        assert!(error.message.starts_with("no way at "), "{error}");
        assert!(error.detail_json.contains("guard.rs:"), "{error:?}");
        assert_eq!(catch(|| 3), Ok(3));
    }

    #[test]
    fn a_payload_that_panics_when_dropped_does_no_harm() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("again");
            }
        }
        let panicked = catch(|| panic::panic_any(Bomb)).expect_err("it panicked");
        assert_eq!(panicked.message, "a panic without a text");
    }

    #[tokio::test]
    async fn a_future_that_panics_is_over() {
        struct Loud;
        impl Drop for Loud {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        let panicked = Guarded::new(async {
            tokio::task::yield_now().await;
            panic!("first")
        });
        assert_eq!(panicked.await.expect_err("it panicked").message, "first");
        let loud = Guarded::new(async {
            let _loud = Loud;
            std::future::pending::<()>().await;
        });
        let mut loud = Box::pin(loud);
        assert_eq!(futures_util::FutureExt::now_or_never(&mut loud), None);
        drop(loud);
    }
}
