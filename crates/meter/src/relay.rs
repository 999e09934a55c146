//! An answer on its way from the provider to the program: bytes pass as they come, and their use is read beside them.
//!
//! No task and no channel lie between: what the program takes is taken from the provider. If the program goes, this is dropped. A stream
//! ends with it: the connection to the provider is closed, and the reservation is settled. Of an answer that is no stream the provider
//! has made all and charges all, so its rest is read for what it reports.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::runtime::Handle;

use crate::reader::Reader;
use crate::reservation::Reservation;
use crate::settle::Ending;

/// The longest time for which the rest of an answer is read after its program has gone. The end of the run waits for it.
const REST: Duration = Duration::from_secs(10);

/// The body of an answer.
pub(crate) struct Relay {
    inner: reqwest::Body,
    /// Of an answer whose use is counted.
    metered: Option<Metered>,
    passing: VecDeque<Bytes>,
    over: bool,
}

/// The count of the use of an answer.
pub(crate) struct Metered {
    pub(crate) reader: Reader,
    pub(crate) reservation: Reservation,
    /// True if the program has asked for pieces as they are made, whatever their form.
    pub(crate) streams: bool,
}

impl Relay {
    /// An answer whose use is counted, or which costs nothing.
    pub(crate) fn new(inner: reqwest::Body, metered: Option<Metered>) -> Self {
        Self { inner, metered, passing: VecDeque::new(), over: false }
    }

    /// Reads the answer to its end, and settles the request by what it reports; by its bound where the end does not come in time.
    async fn read_rest(mut self) {
        let rest = async {
            // One that is too long to be read says nothing, whatever still comes.
            while self.metered.as_ref().is_some_and(|metered| metered.reader.is_whole()) {
                let next = poll_fn(|cx| Pin::new(&mut self).poll_frame(cx)).await;
                if !matches!(next, Some(Ok(_))) {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(REST, rest).await;
        // A further rest would be read for ever.
        self.settle();
    }

    /// Takes the end of the answer.
    fn end(&mut self) {
        self.over = true;
        if let Some(Metered { reader, reservation, .. }) = &mut self.metered {
            reader.finish(&mut reservation.report, &mut self.passing);
        }
        self.settle();
    }

    /// Settles the request by what has come.
    fn settle(&mut self) {
        let Some(Metered { mut reservation, .. }) = self.metered.take() else { return };
        let report = &reservation.report;
        if report.failed || !matches!(reservation.ending, Ending::Broken) {
            return;
        }
        if report.is_whole() {
            reservation.ending = Ending::Answered;
        } else if report.ended {
            reservation.ending = Ending::Unreported;
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // An answer whose length was announced is over with its last byte, and is not asked for more.
        if self.metered.is_some() && self.inner.is_end_stream() {
            return self.end();
        }
        let is_made = |it: &Metered| !it.streams && it.reader.is_whole();
        let reads_on = self.metered.as_ref().is_some_and(is_made);
        // Without a runtime the process ends, and nothing can be read.
        if let (true, Ok(runtime)) = (reads_on, Handle::try_current()) {
            let rest = Self::new(std::mem::take(&mut self.inner), self.metered.take());
            runtime.spawn(rest.read_rest());
        }
        // Many programs leave with the last event of a stream, before its end has come.
        self.settle();
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
                    // Now: the program may keep its connection for a while.
                    if this.metered.as_ref().is_some_and(|it| it.reservation.report.ended) {
                        this.settle();
                    }
                    this.metered = None;
                    this.over = true;
                    return Poll::Ready(Some(Err(error.without_url())));
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                    Ok(bytes) => match &mut this.metered {
                        None => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                        Some(Metered { reader, reservation, .. }) => {
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
