//! The table of methods: a name, what it takes, what it answers.

use offshoot_model::{Refusal, json_error, json_field, json_object};
use serde_json::value::RawValue;

use super::{
    Activities, Activity, Cancel, ContextGet, ContextInfo, ContextPut, ContextRead, Delegate,
    Delegated, Done, History, HistoryPage, List, Merge, Merged, Observed, Output, OutputWritten,
    Pause, RaiseBudget, Report, Runs, Send, Spawn, SpawnMany, Spawned, SpawnedMany, Status,
    StatusAnswer, Tree, Trees, Variable, Variables, Wait, Waited,
};

/// A type of parameters that knows its method and what is answered to it.
pub trait Ask: Into<Request> {
    /// The type of the answer.
    type Answer;

    /// The answer as a response.
    fn respond(answer: Self::Answer) -> Response;

    /// Takes the answer out of a response; none where it is that of another method.
    fn answer(response: Response) -> Option<Self::Answer>;
}

/// Parameters that are not those of a known method.
#[derive(Debug)]
pub(crate) enum ParamsError {
    UnknownMethod,
    Invalid {
        /// The field that is wrong; none where all of them are.
        field: Option<String>,
        message: String,
    },
}

macro_rules! methods {
    ($( $(#[$doc:meta])* $name:literal $Request:ident => $Response:ident($Answer:ident); )*) => {
        /// A request. Closed: the service that answers handles every case.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Request {
            $( $(#[$doc])* $Request(Box<$Request>), )*
        }

        /// An answer: to each request, the variant beside it in the table.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Response {
            $(
                #[doc = concat!("To `", $name, "`.")]
                $Response(Box<$Answer>),
            )*
        }

        impl Request {
            /// The names of all methods.
            pub const METHODS: &[&str] = &[$($name),*];

            /// Returns the name of the method.
            pub const fn method(&self) -> &'static str {
                match self {
                    $( Self::$Request(_) => $name, )*
                }
            }

            pub(crate) fn parse(method: &str, params: Option<&RawValue>) -> Result<Self, ParamsError> {
                let params = params.map_or("{}", RawValue::get);
                let request = match method {
                    $( $name => json_object(params).map(Self::$Request), )*
                    _ => return Err(ParamsError::UnknownMethod),
                };
                request.map_err(|error| ParamsError::Invalid {
                    field: json_field(params, &error),
                    message: json_error(params, &error),
                })
            }

            pub(crate) fn params(&self) -> Box<RawValue> {
                let params = match self {
                    $( Self::$Request(params) => serde_json::value::to_raw_value(params), )*
                };
                params.expect("parameters are plain data")
            }
        }

        impl Response {
            /// The method that it answers.
            pub const fn method(&self) -> &'static str {
                match self {
                    $( Self::$Response(_) => $name, )*
                }
            }

            /// The answer to a method of the table.
            pub(crate) fn parse(method: &str, result: &RawValue) -> serde_json::Result<Self> {
                match method {
                    $( $name => serde_json::from_str(result.get()).map(Self::$Response), )*
                    other => unreachable!("`{other}` is in no row of the table"),
                }
            }

            pub(crate) fn result(&self) -> Box<RawValue> {
                let result = match self {
                    $( Self::$Response(result) => serde_json::value::to_raw_value(result), )*
                };
                result.expect("answers are plain data")
            }
        }

        $(
            impl From<$Request> for Request {
                fn from(params: $Request) -> Self {
                    Self::$Request(Box::new(params))
                }
            }

            impl Ask for $Request {
                type Answer = $Answer;

                fn respond(answer: $Answer) -> Response {
                    Response::$Response(Box::new(answer))
                }

                fn answer(response: Response) -> Option<$Answer> {
                    match response {
                        Response::$Response(answer) => Some(*answer),
                        _ => None,
                    }
                }
            }
        )*
    };
}

methods! {
    /// A child.
    "spawn" Spawn => Spawned(Spawned);
    /// A child by the agent that fits.
    "delegate" Delegate => Delegated(Delegated);
    /// The end of a task that the caller did itself.
    "observed" Observed => Noted(Done);
    /// Several children.
    "spawn_many" SpawnMany => SpawnedMany(SpawnedMany);
    /// Until runs have ended.
    "wait" Wait => Waited(Waited);
    /// A note to the parent.
    "report" Report => Reported(Done);
    /// A message to a session below.
    "send" Send => Sent(Done);
    /// The end of a run below.
    "cancel" Cancel => Cancelled(Done);
    /// No admission and no start, or both again.
    "pause" Pause => Paused(Done);
    /// More budget.
    "budget" RaiseBudget => BudgetRaised(Done);
    /// Runs with what is below them.
    "tree" Tree => Tree(Trees);
    /// A list of runs.
    "list" List => List(Runs);
    /// The words of agents, written to files.
    "output" Output => OutputWritten(OutputWritten);
    /// The history of a session.
    "history" History => History(HistoryPage);
    /// Results as one answer.
    "merge" Merge => Merged(Merged);
    /// A value to keep.
    "context.put" ContextPut => ContextPut(Variable);
    /// A value.
    "context.get" ContextGet => ContextGet(ContextRead);
    /// Information about values.
    "context.info" ContextInfo => ContextInfo(Variables);
    /// The caller itself.
    "status" Status => Status(StatusAnswer);
    /// The silence of the runs that hold a slot.
    "activity" Activity => Activity(Activities);
}

impl ParamsError {
    /// The same as the refusal that a request gets which is wrong in itself.
    pub(crate) fn refusal(field: Option<String>, message: &str) -> Refusal {
        Refusal::invalid(field.unwrap_or_else(|| "params".to_owned()), message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_those_of_their_method() {
        fn check(method: &str, params: &str, expected: &str) {
            let raw = RawValue::from_string(params.to_owned()).unwrap();
            let found = match Request::parse(method, Some(&raw)) {
                Ok(request) => {
                    assert_eq!(request.method(), method);
                    request.params().get().to_owned()
                }
                Err(ParamsError::UnknownMethod) => "no such method".to_owned(),
                Err(ParamsError::Invalid { field, message }) => {
                    format!("{}: {message}", field.unwrap_or_default())
                }
            };
            assert_eq!(found, expected, "{method} {params}");
        }
        check("spawn", r#"{"task":"x"}"#, r#"{"task":"x"}"#);
        check("spawn", r#"{"task":"x","tomorrow":[1]}"#, r#"{"task":"x"}"#);
        check("spawn", r#"{"task":"x","agent":null}"#, r#"{"task":"x"}"#);
        check("spawn", "{}", "task: the key `task` is missing");
        check("wait", "{}", "{}");
        check("wait", r#"{"mode":"any","runs":["0198"]}"#, r#"{"runs":["0198"],"mode":"any"}"#);
        check("wait", r#"{"mode":"most"}"#, "mode: `mode`: found `most`, expected `all` or `any`");
        check(
            "context.put",
            r#"{"name":"n","value":{"json":{"b":1,"a": 2}}}"#,
            r#"{"name":"n","value":{"json":{"b":1,"a": 2}}}"#,
        );
        check("spwan", "{}", "no such method");
        check("hello", "{}", "no such method");
    }

    #[test]
    fn parameters_may_be_left_out_where_none_is_needed() {
        for method in Request::METHODS {
            let needs_none = matches!(
                *method,
                "spawn_many"
                    | "wait"
                    | "tree"
                    | "list"
                    | "output"
                    | "context.info"
                    | "status"
                    | "activity"
            );
            assert_eq!(Request::parse(method, None).is_ok(), needs_none, "{method}");
        }
    }
}
