//! An answer on its way from the provider to the program: bytes pass as they come, and their use is read beside them.
//!
//! No task and no channel lie between: what the program takes is taken from the provider. If the program goes, this is dropped, the
//! connection to the provider with it, and the reservation is settled.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame, SizeHint};

use crate::reader::Reader;
use crate::reservation::Reservation;
use crate::settle::Ending;

/// The body of an answer.
pub(crate) struct Relay {
    inner: reqwest::Body,
    /// Of an answer whose use is counted.
    metered: Option<Metered>,
    passing: VecDeque<Bytes>,
    over: bool,
}

struct Metered {
    reader: Reader,
    reservation: Reservation,
}

impl Relay {
    /// An answer that costs nothing.
    pub(crate) fn free(inner: reqwest::Body) -> Self {
        Self { inner, metered: None, passing: VecDeque::new(), over: false }
    }

    pub(crate) fn metered(inner: reqwest::Body, reader: Reader, reservation: Reservation) -> Self {
        let metered = Some(Metered { reader, reservation });
        Self { inner, metered, passing: VecDeque::new(), over: false }
    }

    /// Takes the end of the answer.
    fn end(&mut self) {
        self.over = true;
        if let Some(Metered { mut reader, mut reservation }) = self.metered.take() {
            reader.finish(&mut reservation.report, &mut self.passing);
            // An answer that does not say what it used came to no end that counts.
            let is_whole = !reservation.report.failed && reservation.report.is_whole();
            if is_whole && matches!(reservation.ending, Ending::Broken) {
                reservation.ending = Ending::Answered;
            }
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // An answer whose length was announced is over with its last byte, and is not asked for more.
        if self.metered.is_some() && self.inner.is_end_stream() {
            self.end();
        }
    }
}

impl Body for Relay {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        loop {
            if let Some(bytes) = this.passing.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if this.over {
                return Poll::Ready(None);
            }
            match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                None => this.end(),
                Some(Err(error)) => {
                    // Settled now: the program may keep its connection for a while.
                    this.metered = None;
                    this.over = true;
                    return Poll::Ready(Some(Err(error.without_url())));
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                    Ok(bytes) => match &mut this.metered {
                        None => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                        Some(Metered { reader, reservation }) => {
                            reader.feed(bytes, &mut reservation.report, &mut this.passing);
                        }
                    },
                },
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        // Of an answer that is counted the end has to be seen.
        self.over && self.passing.is_empty()
            || (self.metered.is_none() && self.passing.is_empty() && self.inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.metered {
            Some(metered) if !metered.reader.keeps_length() => SizeHint::default(),
            _ => self.inner.size_hint(),
        }
    }
}
