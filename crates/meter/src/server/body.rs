//! The body of a request, as it is taken in.

use std::io::Read;

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, HeaderMap};
use ruzstd::decoding::StreamingDecoder;

use crate::refusal::{Code, Refusal};

/// A body that was taken in.
pub(super) struct Taken {
    /// As it came.
    pub(super) sent: Bytes,
    /// As it reads: the same, or what was packed in it.
    pub(super) plain: Bytes,
}

/// Takes a whole body. One that is too long is read to its end all the same, or the program would not hear why it is refused.
pub(super) async fn take(
    body: Incoming,
    headers: &HeaderMap,
    most: usize,
) -> Result<Taken, Refusal> {
    let sent = collect(body, most).await?;
    let encoding = headers.get(CONTENT_ENCODING).map(|value| value.to_str().unwrap_or("?").trim());
    let plain = match encoding {
        None | Some("identity" | "") => sent.clone(),
        Some("zstd") => unpack(&sent, most)?,
        Some(other) => {
            let other: String = other.chars().take(40).collect();
            let message = format!("its body is packed as {other}, which cannot be read here");
            let hint = "send it as it is, or packed by zstd";
            return Err(Refusal::new(Code::MalformedRequest, message, hint));
        }
    };
    Ok(Taken { sent, plain })
}

/// Reads a body that nothing is made of.
pub(super) async fn drain(mut body: Incoming, most: usize) {
    let mut left = most;
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        // A program that sends more than any request has is not worth an answer that it can read.
        let Some(rest) = left.checked_sub(length) else { return };
        left = rest;
    }
}

async fn collect(mut body: Incoming, most: usize) -> Result<Bytes, Refusal> {
    let too_large = || {
        let message = format!("its body is larger than {} MiB", most >> 20);
        Refusal::new(Code::RequestTooLarge, message, "send less, for example fewer files at once")
    };
    let announced = body.size_hint().exact().unwrap_or(0);
    if announced > most as u64 {
        drain(body, 4 * most).await;
        return Err(too_large());
    }
    // What is announced is not believed beyond what usual requests have.
    let mut bytes = Vec::with_capacity((announced as usize).min(1024 * 1024));
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            let message = "its body broke off";
            return Err(Refusal::new(Code::MalformedRequest, message, "send it again"));
        };
        let Some(data) = frame.data_ref() else { continue };
        if bytes.len() + data.len() > most {
            drop(bytes);
            drain(body, 4 * most).await;
            return Err(too_large());
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes.into())
}

fn unpack(packed: &[u8], most: usize) -> Result<Bytes, Refusal> {
    let cannot = |error: String| {
        let message = format!("its body cannot be unpacked: {error}");
        Refusal::new(Code::MalformedRequest, message, "send it as it is")
    };
    let decoder = StreamingDecoder::new(packed).map_err(|error| cannot(error.to_string()))?;
    let mut plain = Vec::new();
    let read = decoder.take(most as u64 + 1).read_to_end(&mut plain);
    read.map_err(|error| cannot(error.to_string()))?;
    if plain.len() > most {
        return Err(cannot(format!("it is larger than {} MiB", most >> 20)));
    }
    Ok(plain.into())
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    #[test]
    fn a_packed_body_is_bounded() {
        let packed = compress_to_vec(&b"hello hello hello hello"[..], CompressionLevel::Fastest);
        assert_eq!(unpack(&packed, 100).unwrap(), "hello hello hello hello");
        assert!(unpack(&packed, 10).is_err());
        let bomb = compress_to_vec(&vec![0; 1 << 20][..], CompressionLevel::Fastest);
        assert!(unpack(&bomb, 1000).is_err());
        assert!(unpack(b"no such thing", 100).is_err());
        assert!(unpack(&packed[..packed.len() - 4], 100).is_err());
    }
}
