//! A refusal, as a reader of any version sees it.

use offshoot_model::{JsonText, Refusal};
use serde::{Deserialize, Serialize};

/// The answer no. Like [`Refusal`], with the code as text: a later version may have rules that this one does not know.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireRefusal {
    /// `forbidden`, or `error` for a request that is wrong in itself.
    pub status: String,
    /// The rule, for programs.
    pub code: String,
    /// The field of the request that is wrong.
    pub field: Option<String>,
    /// The rule, for people and models.
    pub message: String,
    /// Advice on what to do next.
    pub hint: Option<String>,
    /// The setting that decided: `{ key, agent, value, origin }`.
    pub governed_by: Option<JsonText>,
}

impl From<&Refusal> for WireRefusal {
    fn from(refusal: &Refusal) -> Self {
        let text = serde_json::to_string(refusal).expect("a refusal is plain data");
        serde_json::from_str(&text).expect("the fields here are those of a refusal")
    }
}

#[cfg(test)]
mod tests {
    use offshoot_model::{GovernedBy, RefusalCode};

    use super::*;

    #[test]
    fn nothing_of_a_refusal_is_lost() {
        let governed_by = GovernedBy {
            key: "maxDepth".into(),
            agent: Some("main".into()),
            value: JsonText::parse("3".into()).unwrap(),
            origin: "built-in".into(),
        };
        let depth = Refusal::new(RefusalCode::DepthLimit, "too deep")
            .with_hint("do it yourself")
            .governed_by(Some(Box::new(governed_by)));
        for refusal in [depth, Refusal::invalid("task", "is empty")] {
            let here = serde_json::to_string(&WireRefusal::from(&refusal)).unwrap();
            assert_eq!(here, serde_json::to_string(&refusal).unwrap());
        }
    }

    #[test]
    fn a_later_rule_can_be_read() {
        let text = r#"{"status":"forbidden","code":"full_moon","message":"not tonight","x":1}"#;
        let refused: WireRefusal = serde_json::from_str(text).unwrap();
        assert_eq!(refused.code, "full_moon");
    }
}
