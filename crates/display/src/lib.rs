//! Lines, trees and JSON from events, live and replayed alike.
