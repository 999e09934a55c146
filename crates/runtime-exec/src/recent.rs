//! A cache of one entry: a fact about the last run holds for the next one, as long as both got the same input.

use std::sync::Arc;

use parking_lot::Mutex;

/// Remembers one answer, by the identity of what it was asked about: the pieces of a map share their command and their
/// task, so each is looked up once for all of them.
pub(crate) struct Recent<K: ?Sized, V> {
    last: Mutex<Option<(Arc<K>, V)>>,
}

impl<K: ?Sized, V: Clone> Recent<K, V> {
    pub(crate) fn new() -> Self {
        Self { last: Mutex::new(None) }
    }

    /// The answer for `key`, found out again where it is another one than the last. Errors are not remembered.
    pub(crate) fn get<E>(&self, key: &Arc<K>, find: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        let mut last = self.last.lock();
        if let Some((known, value)) = &*last
            && Arc::ptr_eq(known, key)
        {
            return Ok(value.clone());
        }
        let value = find()?;
        *last = Some((Arc::clone(key), value.clone()));
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_question_is_asked_once() {
        let recent: Recent<str, usize> = Recent::new();
        let (one, other): (Arc<str>, Arc<str>) = ("same text".into(), "same text".into());
        let mut asked = 0;
        let mut ask = |key: &Arc<str>| {
            recent.get(key, || {
                asked += 1;
                Ok::<_, ()>(asked)
            })
        };
        assert_eq!((ask(&one), ask(&one), ask(&other), ask(&other)), (Ok(1), Ok(1), Ok(2), Ok(2)));
        assert_eq!(recent.get(&one, || Err("no")), Err("no"));
        assert_eq!(recent.get(&other, || Err("no")), Ok(2), "an error is not remembered");
    }
}
