//! The numbers of errors.

/// The reason why a request has no result. The first five are those of JSON-RPC 2.0, the others are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// −32700: the line is not JSON.
    Parse,
    /// −32600: the line is JSON, but no request; or it came at the wrong time.
    InvalidRequest,
    /// −32601: there is no such method.
    MethodNotFound,
    /// −32602: the method is known, and these parameters are not its own. `data` is a refusal `invalid_request`.
    InvalidParams,
    /// −32603: the supervisor could not do it. `data` may hold a `hint`.
    Failed,
    /// −32000: the answer is no. `data` is the refusal.
    Refused,
    /// −32001: the caller cancelled the request.
    Cancelled,
    /// −32002: the line is longer than a line may be; the connection ends.
    MessageTooLarge,
    /// −32003: the answer would be longer than a line may be.
    AnswerTooLarge,
    /// −32004: too many connections, or too many requests at once on one of them.
    TooMany,
    /// −32005: no version of the protocol that both sides speak; the connection ends.
    UnsupportedProtocol,
    /// A number that this version does not know.
    Unknown(i64),
}

/// Numbers and their meanings, once for both directions.
const TABLE: &[(i64, ErrorCode)] = &[
    (-32700, ErrorCode::Parse),
    (-32600, ErrorCode::InvalidRequest),
    (-32601, ErrorCode::MethodNotFound),
    (-32602, ErrorCode::InvalidParams),
    (-32603, ErrorCode::Failed),
    (-32000, ErrorCode::Refused),
    (-32001, ErrorCode::Cancelled),
    (-32002, ErrorCode::MessageTooLarge),
    (-32003, ErrorCode::AnswerTooLarge),
    (-32004, ErrorCode::TooMany),
    (-32005, ErrorCode::UnsupportedProtocol),
];

impl ErrorCode {
    /// All that this version knows, with their numbers.
    pub fn all() -> impl Iterator<Item = (i64, Self)> {
        TABLE.iter().copied()
    }

    /// From the number on the wire.
    pub fn from_number(number: i64) -> Self {
        let known = TABLE.iter().find(|(known, _)| *known == number);
        known.map_or(Self::Unknown(number), |(_, code)| *code)
    }

    /// The number on the wire.
    pub fn number(self) -> i64 {
        match self {
            Self::Unknown(number) => number,
            known => {
                let row = TABLE.iter().find(|(_, code)| *code == known);
                row.expect("every variant but `Unknown` has a row").0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_meanings_belong_together() {
        for (number, code) in ErrorCode::all() {
            assert_eq!(ErrorCode::from_number(number), code);
            assert_eq!(code.number(), number);
        }
        assert_eq!(ErrorCode::from_number(7), ErrorCode::Unknown(7));
        assert_eq!(ErrorCode::Unknown(7).number(), 7);
    }
}
