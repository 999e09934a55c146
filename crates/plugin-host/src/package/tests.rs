use super::*;

const WHOLE: &str = r#"name = "upper"
version = "0.2.0"
abi = "1.0"
description = "upper case"
license = "MIT"
runtimes = ["upper", "upper-loud"]
merges = ["longest"]

[files.x86_64-unknown-linux-gnu]
path = "lib/libupper.so"
digest = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"

[config]
type = "object"
"#;

fn parse(text: &str) -> Result<Package, PackageProblems> {
    Package::parse(text, Path::new("p/plugin.toml"))
}

#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    let problems = parse(text).expect_err("something is wrong in it");
    let lines: Vec<String> = problems.problems().iter().map(ToString::to_string).collect();
    assert_eq!(lines, expected);
}

#[test]
fn a_whole_package_is_read() {
    let package = parse(WHOLE).expect("nothing is wrong in it");
    assert_eq!(package.name.as_str(), "upper");
    assert_eq!(package.abi, AbiVersion { major: 1, minor: 0 });
    assert_eq!(package.runtimes.len(), 2);
    let file = &package.files["x86_64-unknown-linux-gnu"];
    assert_eq!(file.path, Path::new("lib/libupper.so"));
    assert_eq!(file.digest, Some(ContentHash::of(b"")));
    assert_eq!(package.config, Some(serde_json::json!({ "type": "object" })));
}

#[test]
fn a_package_is_written_as_it_was_read() {
    let package = parse(WHOLE).expect("nothing is wrong in it");
    assert_eq!(parse(&package.to_toml()), Ok(package));
}

#[test]
fn what_is_wrong_has_a_place() {
    refused(
        &WHOLE.replace("version =", "versoin ="),
        &[
            "p/plugin.toml:1:1: there is no `version`",
            "p/plugin.toml:2:1: versoin: unknown key, nearest is `version`",
        ],
    );
    refused(
        &WHOLE.replace("\"upper-loud\"", "\"Upper Loud\", \"upper\""),
        &[
            "p/plugin.toml:6:22: runtimes: found \"Upper Loud\", allowed is a name of up to 64 of \
             a-z, 0-9, _ and -, beginning with a letter or digit",
            "p/plugin.toml:6:36: runtimes: `upper` stands there twice",
        ],
    );
    refused(
        &WHOLE.replace("lib/libupper.so", "../libupper.so").replace("\"1.0\"", "1.0"),
        &[
            "p/plugin.toml:3:7: abi: found 1.0, allowed is a text that is not empty",
            "p/plugin.toml:10:8: files.x86_64-unknown-linux-gnu.path: found \"../libupper.so\", \
             allowed is a path within the folder of the plugin",
        ],
    );
    refused(
        &WHOLE.replace("af1349", "zz1349").replace("path =", "pat ="),
        &[
            "p/plugin.toml:9:8: files.x86_64-unknown-linux-gnu: there is no `path`",
            "p/plugin.toml:10:1: files.x86_64-unknown-linux-gnu.pat: unknown key, nearest is `path`",
            "p/plugin.toml:11:10: files.x86_64-unknown-linux-gnu.digest: found \
             \"zz1349b9f5f9a1a6a0404dea36dcc9499bcb25c, allowed is a BLAKE3 hash of 64 hexadecimal \
             digits",
        ],
    );
    let nothing = WHOLE.replace("\"upper\", \"upper-loud\"", "").replace("\"longest\"", "");
    refused(&nothing, &["p/plugin.toml:1:1: the plugin offers neither a runtime nor a merge"]);
}

#[test]
fn text_that_is_no_toml_has_a_place_too() {
    let problems = parse("name = \n").expect_err("a value is missing");
    assert_eq!((problems.problems()[0].line, problems.problems()[0].column), (1, 8));
}

#[test]
fn versions_are_two_numbers() {
    let check = |text: &str, expected: Option<(u32, u32)>| {
        let version = AbiVersion::parse(text).map(|version| (version.major, version.minor));
        assert_eq!(version, expected, "{text}");
    };
    check("1.0", Some((1, 0)));
    check("1.12", Some((1, 12)));
    check("1.0.3", Some((1, 0)));
    for text in ["", "1", "1.", "1.x", "1.0.0.0", "-1.0", "1.0.x"] {
        check(text, None);
    }
}
