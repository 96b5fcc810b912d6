//! Secrets and personal data: what is found, what stays, and what holds for any text.
//!
//! All values are made up here, from parts and by counting, so that no file of the repository holds one.

mod corpus;
mod laws;
mod made_up;
mod measured;
mod pages;

use made_up::{jwt, letters, pem};
use recto::redact::{Found, Kind, Pattern, Redactor};

fn found(redactor: &Redactor, text: &str) -> Vec<(String, String)> {
    let name = |it: &Found| (it.kind.name().to_owned(), text[it.range.clone()].to_owned());
    redactor.spans(text).iter().map(name).collect()
}

/// A text in which tags are numbers, for each kind in the order in which they first stand there.
pub(super) fn numbered(shown: &str) -> String {
    let (mut told, mut rest) = (String::new(), shown);
    let mut tags: Vec<&str> = Vec::new();
    while let Some(at) = rest.find("[secret:").into_iter().chain(rest.find("[personal:")).min() {
        let Some(end) = rest[at..].find(']').map(|end| at + end) else { break };
        let (name, tag) = rest[at..end].split_once('#').unwrap_or((&rest[at..end], ""));
        let placeholder = &rest[at..end];
        if !tags.contains(&placeholder) {
            tags.push(placeholder);
        }
        let same = tags.iter().filter(|known| known.split_once('#').map(|(known, _)| known) == Some(name));
        let number = same.take_while(|known| **known != placeholder).count() + 1;
        let is_tag = tag.len() == 5;
        told.push_str(&rest[..at]);
        told.push_str(&if is_tag { format!("{name}#{number}]") } else { format!("{placeholder}]") });
        rest = &rest[end + 1..];
    }
    told + rest
}

#[track_caller]
fn check(text: &str, kind: &str, value: &str) {
    assert_eq!(found(&Redactor::all(), text), [(kind.to_owned(), value.to_owned())], "in {text:?}");
}

/// A key is found alone, in a sentence, quoted, escaped, assigned, in an address and on a command line.
#[track_caller]
fn check_key(kind: &str, value: &str) {
    for text in [
        value.to_owned(),
        format!("The key is {value}."),
        format!("It was ({value}), wasn't it?"),
        format!("{{\"text\":\"one\\n{value}\\ntwo\"}}"),
        format!("export SOME_NAME={value}"),
        format!("api_key: \"{value}\""),
        format!("{{\\\"token\\\": \\\"{value}\\\"}}"),
        format!("https://host.io/path?key={value}&more=1"),
        format!("curl -H 'X-Key: {value}' https://host.io"),
        format!("\u{1b}[31m{value}\u{1b}[0m"),
        format!("前{value}後"),
        format!("q%3D{value}%26"),
    ] {
        check(&text, kind, value);
    }
}

#[test]
fn keys_of_providers_are_found_by_their_first_letters() {
    for seed in 0..20 {
        let word = |length| letters(length, made_up::WORD, seed);
        let alnum = |length| letters(length, made_up::ALNUM, seed);
        check_key("anthropic_key", &format!("sk-ant-{}-{}AA", "api03", word(93)));
        check_key("openai_key", &format!("sk-proj-{}", word(120)));
        check_key("openai_key", &format!("sk-svcacct-{}", word(60)));
        check_key("openai_key", &format!("sk-{}", alnum(48)));
        check_key("openai_key", &format!("sk-{}", letters(32, made_up::HEX, seed)));
        check_key("google_key", &format!("AIza{}", word(35)));
        for prefix in ["ghp_", "gho_", "ghs_", "ghu_", "ghr_"] {
            check_key("github_token", &format!("{prefix}{}", alnum(36)));
        }
        check_key("github_token", &format!("github_pat_{}_{}", alnum(22), alnum(59)));
        check_key("gitlab_token", &format!("glpat-{}", word(20)));
        for prefix in ["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-"] {
            let digits = letters(12, made_up::DIGITS, seed);
            check_key("slack_token", &format!("{prefix}{digits}-{digits}-{}", alnum(24)));
        }
        for prefix in ["sk_live_", "rk_live_"] {
            check_key("stripe_key", &format!("{prefix}{}", alnum(24)));
        }
        check_key("stripe_key", &format!("whsec_{}", alnum(32)));
        check_key("aws_key_id", &format!("AKIA{}", letters(16, made_up::LARGE, seed)));
        check_key("aws_key_id", &format!("ASIA{}7", letters(15, made_up::LARGE, seed)));
        check_key("hugging_face_token", &format!("hf_{}", alnum(34)));
        check_key("npm_token", &format!("npm_{}", alnum(36)));
        check_key("pypi_token", &format!("pypi-AgE{}", word(150)));
        check_key("sendgrid_key", &format!("SG.{}.{}", word(22), word(43)));
        check_key("twilio_key", &format!("SK{}", letters(32, made_up::HEX, seed)));
        check_key("jwt", &jwt(seed));
    }
}

#[test]
fn secrets_of_aws_are_found_by_their_name_or_behind_the_id() {
    for seed in 0..20 {
        let (id, secret) = (format!("AKIA{}", letters(16, made_up::LARGE, seed)), letters(40, made_up::BASE64, seed));
        check(&format!("aws_secret_access_key = {secret}"), "aws_secret_key", &secret);
        check(&format!("{{\"SecretAccessKey\": \"{secret}\"}}"), "aws_secret_key", &secret);
        check(&format!("AWS_SECRET_KEY={secret}\n"), "aws_secret_key", &secret);
        let both = [("aws_key_id".to_owned(), id.clone()), ("aws_secret_key".to_owned(), secret.clone())];
        assert_eq!(found(&Redactor::secrets(), &format!("Access key ID,Secret access key\n{id},{secret}\n")), both);
        assert_eq!(found(&Redactor::secrets(), &secret), [], "alone it is any text");
    }
}

#[test]
fn keys_in_connection_strings_are_found() {
    let key = format!("{}==", letters(86, made_up::BASE64, 3));
    let text = format!("DefaultEndpointsProtocol=https;AccountName=store;AccountKey={key};EndpointSuffix=core.net");
    check(&text, "azure_key", &key);
    let key = format!("{}=", letters(43, made_up::BASE64, 4));
    check(&format!("Endpoint=sb://bus.net/;SharedAccessKeyName=Root;SharedAccessKey={key}"), "azure_key", &key);
}

#[test]
fn private_keys_are_found_whole_also_when_escaped_or_cut_off() {
    for title in ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY"] {
        let key = pem(title);
        check(&key, "private_key", &key);
        check(&format!("id_rsa:\n{key}\nand more words"), "private_key", &key);
        let escaped = key.replace('\n', "\\n");
        check(&format!("{{\"private_key\": \"{escaped}\"}}"), "private_key", &escaped);
    }
    let key = pem("PRIVATE KEY");
    let cut = &key[..key.len() - 60];
    check(cut, "private_key", cut);
    let without_end = key.lines().take(5).collect::<Vec<_>>().join("\n");
    check(&format!("{without_end}\n\nThis is what the file says."), "private_key", &without_end);
    let headers = key.replacen("-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00AA\n\n", 1);
    check(&headers, "private_key", &headers);
    assert_eq!(found(&Redactor::all(), &pem("PUBLIC KEY")), []);
    assert_eq!(found(&Redactor::all(), &pem("CERTIFICATE")), []);
}

#[test]
fn what_stands_in_authorization_headers_is_found() {
    let token = letters(40, made_up::WORD, 5);
    for text in [
        format!("Authorization: Bearer {token}"),
        format!("{{\"Authorization\": \"Bearer {token}\"}}"),
        format!("headers.set('authorization', 'bearer {token}')"),
        format!("curl -H \"Authorization: Bearer {token}\" https://host.io"),
        // name:Kr7pTq92
        "Authorization: Basic bmFtZTpLcjdwVHE5Mg==".to_owned(),
    ] {
        let value = if text.contains("Basic") { "bmFtZTpLcjdwVHE5Mg==" } else { &token };
        check(&text, "authorization", value);
    }
    for text in ["Bearer of bad news", "Authorization: Bearer <token>", "Bearer $TOKEN", "Bearer ${{ secrets.KEY }}"] {
        assert_eq!(found(&Redactor::all(), text), [], "{text}");
    }
}

#[test]
fn passwords_in_addresses_are_found_and_nothing_else_of_them() {
    check("postgres://app:Kr7pTq92@db.internal:5432/app", "url_password", "Kr7pTq92");
    check("redis://:s3same@cache:6379/0", "url_password", "s3same");
    check("clone https://name:hunter2@host.io/repo.git now", "url_password", "hunter2");
    check("amqp://me:p%40ss1@queue", "url_password", "p%40ss1");
    check("mongodb+srv://me:пароль@cluster", "url_password", "пароль");
    for text in [
        "postgres://postgres:postgres@localhost/db",
        "https://user:password@host.io",
        "https://user:${PASSWORD}@host.io",
        "https://x-access-token:TOKEN@host.io/a/b",
        "https://host.io:8080/path@2.0",
        "ssh://git@host.io/repo",
        "http://[::1]:8080/",
    ] {
        assert_eq!(found(&Redactor::all(), text), [], "{text}");
    }
}

#[test]
fn what_is_assigned_to_a_telling_name_is_found() {
    let value = letters(32, made_up::ALNUM, 7);
    for text in [
        format!("token={value}"),
        format!("client_secret: {value}"),
        format!("\"apiKey\": \"{value}\","),
        format!("const ACCESS_TOKEN = '{value}';"),
        format!("let api_key: &str = \"{value}\";"),
        format!("auth_token := `{value}`"),
        format!("config['secret_key'] = \"{value}\""),
        format!("{{\\\"refreshToken\\\":\\\"{value}\\\"}}"),
        format!("tool --api-key {value} --verbose"),
        format!("SIGNING_KEY_PROD={value}"),
        format!("**Token:** {value}"),
        format!("?access_token={value}&x=1"),
        format!("DB_PASSWORD={value}"),
        format!("secret => \"{value}\""),
    ] {
        check(&text, "assigned", &value);
    }
    check("password: \"Tr0ub4dor&3\"", "assigned", "Tr0ub4dor&3");
    check("PGPASSWORD=correct7horse psql", "assigned", "correct7horse");
    check("{\"password\": \"a\\\"b4c5d6e7\"}", "assigned", "a\\\"b4c5d6e7");
    check("secret:\\\"a1B2c3D4e5F6g7H8é\"", "assigned", "a1B2c3D4e5F6g7H8é");
    check("api_key = 0b5a7c9e-41d2-4f6a-8b3c-9d1e2f3a4b5c", "assigned", "0b5a7c9e-41d2-4f6a-8b3c-9d1e2f3a4b5c");
}

#[test]
fn a_secret_is_found_wherever_else_it_stands() {
    let value = letters(32, made_up::ALNUM, 8);
    let text = format!("I got {value}x back.\npassword={value}\nxx{value}");
    let shown = numbered(&Redactor::secrets().redact(&text));
    assert_eq!(shown, "I got [secret:assigned#1]x back.\npassword=[secret:assigned#1]\nxx[secret:assigned#1]");
}

#[test]
fn personal_data_is_found() {
    for (text, kind, value) in [
        ("Mail jo.doe+tag@mail.company.io, please", "email", "jo.doe+tag@mail.company.io"),
        ("<JO@COMPANY.CO.UK>", "email", "JO@COMPANY.CO.UK"),
        ("{\"to\":\"\\njo@company.de\"}", "email", "jo@company.de"),
        ("mailto:jo@company.fr?subject=x", "email", "jo@company.fr"),
        ("Call +49 30 901820 today", "phone", "+49 30 901820"),
        ("tel:+14155550132", "phone", "+14155550132"),
        ("+44 (0)20 7946 0958", "phone", "+44 (0)20 7946 0958"),
        ("(415) 555-0132", "phone", "(415) 555-0132"),
        ("415-555-0132, 9 to 5", "phone", "415-555-0132"),
        ("415.555.0132", "phone", "415.555.0132"),
        ("1-800-555-0199", "phone", "1-800-555-0199"),
        ("Tel. 030 901820-11", "phone", "030 901820-11"),
        ("0171/2345678", "phone", "0171/2345678"),
        ("020 7946 0958", "phone", "020 7946 0958"),
        ("01 99 00 27 53", "phone", "01 99 00 27 53"),
        ("card 4111 1111 1111 1111", "card", "4111 1111 1111 1111"),
        ("4111111111111111.", "card", "4111111111111111"),
        ("3782-822463-10005", "card", "3782-822463-10005"),
        ("5555-5555-5555-4444", "card", "5555-5555-5555-4444"),
        ("IBAN DE89370400440532013000", "iban", "DE89370400440532013000"),
        ("GB82 WEST 1234 5698 7654 32", "iban", "GB82 WEST 1234 5698 7654 32"),
    ] {
        check(text, kind, value);
        assert_eq!(found(&Redactor::secrets(), text), [], "not asked for: {text}");
    }
}

#[test]
fn the_same_value_has_the_same_placeholder_under_the_same_key() {
    let redactor = Redactor::all();
    let key = recto::digest::Digest::of(b"conversation");
    let redact = |text: &str| redactor.redact_keyed(text, key).into_owned();
    let both = redact("jo@company.io, al@company.io");
    let (jo, al) = both.split_once(", ").unwrap();
    assert!(jo != al && jo.starts_with("[personal:email#") && al.starts_with("[personal:email#"), "{both}");
    assert_eq!(redact("al@company.io or jo@company.io"), format!("{al} or {jo}"));
    assert!(redact("+49 30 901820: jo@company.io").ends_with(&format!("]: {jo}")));
    let other = redactor.redact_keyed("jo@company.io", recto::digest::Digest::of(b"another"));
    assert_ne!(other, jo, "another key, another tag");
    assert_eq!(redact(&both), both);
}

#[test]
fn detectors_are_switched_by_name() {
    let text = "jo@company.io token +49 30 901820";
    let redactor = Redactor::none().with("phone").unwrap();
    assert_eq!(numbered(&redactor.redact(text)), "jo@company.io token [personal:phone#1]");
    let redactor = Redactor::all().without("email").unwrap();
    assert_eq!(numbered(&redactor.redact(text)), "jo@company.io token [personal:phone#1]");
    assert_eq!(Redactor::none().with("all").unwrap(), Redactor::all());
    assert_eq!(Redactor::all().without("personal").unwrap(), Redactor::secrets());
    assert_eq!(Redactor::none().redact(text), text);
    let error = Redactor::none().with("emial").unwrap_err();
    assert!(error.is_settings() && error.hint().unwrap().contains("\"email\""), "{error:?}");
    for kind in Kind::ALL {
        let one = Redactor::none().with(kind.name()).unwrap();
        assert_eq!(one.kinds().collect::<Vec<_>>(), [&kind]);
        assert_ne!(one.digest(), Redactor::none().digest());
        assert_ne!(Redactor::all().without(kind.name()).unwrap().digest(), Redactor::all().digest());
    }
}

#[test]
fn patterns_of_the_hosts_own_are_found() {
    let with = |source: &str| Redactor::none().finding("own", Pattern::new(source).unwrap()).unwrap();
    for (source, text, shown) in [
        ("acme_[A-Za-z0-9]{8}", "xacme_a1B2c3D4e", "x[secret:own#1]e"),
        (r"\d{3}-\d{2}-\d{4}", "123-45-6789 1123-45-6789", "[secret:own#1] 1[secret:own#1]"),
        (r"k\.[0-9a-f-]{4,}", "k.0-f9 k.12 k.ffff0", "[secret:own#1] k.12 [secret:own#2]"),
        ("名前:\\w{2,8};", "名前:abc; 名前:a;", "[secret:own#1] 名前:a;"),
        ("[[]x[]y-]{3}", "[xy-]] [xyz", "[secret:own#1]] [xyz"),
    ] {
        assert_eq!(numbered(&with(source).redact(text)), shown, "{source}");
    }
    assert_ne!(with("abcd").digest(), with("abce").digest());
    assert_eq!(with("abcd").without("own").unwrap(), Redactor::none());
    for source in [
        "",
        "abc",
        "a.cd",
        "(a+)+b",
        "[a-z]+x",
        "x[a-z]{1,9}yz..",
        "[^a]{9}",
        "[a",
        "a{9",
        "é{4}",
        "[z-a]{8}",
        r"\q1234",
    ] {
        let error = Pattern::new(source).unwrap_err();
        assert!(error.is_settings() && error.hint().is_some(), "{source}");
    }
    for name in ["", "Own", "a-b", "1a", "email", "secrets", &"a".repeat(41)] {
        let error = Redactor::none().finding(name, Pattern::new("abcd").unwrap()).unwrap_err();
        assert!(error.is_settings(), "{name}");
    }
}
