//! Sends requests to a running server, as a browser does and as attackers might.

// Helpers of tests may unwrap like tests.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use pagetide_record::Record;
use pagetide_serve::{Options, Server};
use pagetide_store::Store;
use pagetide_store::{CampaignNote, Entry, RunEnd, RunState};

/// Idle time after which connections are closed in these tests.
const PATIENCE: Duration = Duration::from_millis(700);

struct Asked {
    address: SocketAddr,
    token: String,
    record: String,
    dir: tempfile::TempDir,
}

fn started() -> Asked {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let mut record = Record::default();
    record.subject.scenario = "<script>alert(1)</script>".to_owned();
    record.subject.variant.name = "a\u{1b}[2J".to_owned();
    let writer = store.writer().unwrap();
    store.add(writer, &mut record).unwrap();
    let options = Options {
        folder: dir.path().to_owned(),
        cache: dir.path().join("cache"),
        program: "/bin/true".into(),
    };
    let server = Server::bind(options, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let server = server.with_patience(PATIENCE);
    let (address, url) = (server.address(), server.url());
    assert_eq!(server.warning(), None);
    std::thread::spawn(move || server.run());
    Asked {
        address,
        token: url.split_once("token=").unwrap().1.to_owned(),
        record: record.id(),
        dir,
    }
}

impl Asked {
    fn raw(&self, path: &str, host: &str, cookie: &str) -> String {
        self.say(&format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        ))
    }

    /// Sends a form as the user's browser would, with additional headers.
    fn post(&self, path: &str, more: &str, form: &str) -> String {
        let (address, token) = (self.address, &self.token);
        let port = address.port();
        self.say(&format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nCookie: pagetide-{port}={token}\r\nConnection: close\r\n{more}\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        ))
    }

    fn say(&self, text: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Sends a GET request as the user's browser would.
    fn get(&self, path: &str) -> String {
        let cookie = format!("pagetide-{}={}", self.address.port(), self.token);
        self.raw(path, &self.address.to_string(), &cookie)
    }
}

#[test]
fn connections_on_which_nothing_comes_are_ended_and_others_are_not() {
    let asked = started();
    let cookie = format!("pagetide-{}={}", asked.address.port(), asked.token);
    let whole = format!(
        "GET / HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\n\r\n",
        asked.address
    );
    // No bytes, an incomplete request, and a complete one after which the connection stays open.
    for said in ["", "GET / HTTP/1.1\r\nHo", &whole] {
        let mut stream = TcpStream::connect(asked.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let start = Instant::now();
        stream.write_all(said.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(
            start.elapsed() >= PATIENCE / 2,
            "{said:?}: {:?}",
            start.elapsed()
        );
        assert_eq!(
            answer.starts_with(b"HTTP/1.1 200"),
            said == whole,
            "{said:?}"
        );
    }
    // A slow client that keeps sending is served.
    let mut stream = TcpStream::connect(asked.address).unwrap();
    for part in whole.as_bytes().chunks(whole.len() / 4 + 1) {
        stream.write_all(part).unwrap();
        std::thread::sleep(PATIENCE / 3);
    }
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200");
}

#[test]
fn requests_without_the_token_are_refused() {
    let asked = started();
    let host = asked.address.to_string();
    for path in [
        "/",
        "/campaigns",
        "/assets/bundle.js",
        "/?token=0123456789abcdef0123456789abcdef",
    ] {
        let answer = asked.raw(path, &host, "");
        assert!(answer.starts_with("HTTP/1.1 403"), "{path}: {answer}");
        assert!(answer.contains("content-security-policy: default-src 'none'"));
    }
}

#[test]
fn the_token_becomes_a_cookie_and_leaves_the_address() {
    let asked = started();
    let path = format!("/history?token={}&metric=x", asked.token);
    let answer = asked.raw(&path, &asked.address.to_string(), "");
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    assert!(
        answer.contains("location: /history?metric=x\r\n"),
        "{answer}"
    );
    assert!(answer.contains("HttpOnly; SameSite=Strict"), "{answer}");
    let astray = format!("//evil.example/?token={}", asked.token);
    let answer = asked.raw(&astray, &asked.address.to_string(), "");
    assert!(answer.contains("location: /evil.example/\r\n"), "{answer}");
}

#[test]
fn a_name_that_is_not_its_own_is_refused_even_with_the_token() {
    let asked = started();
    let cookie = format!("pagetide-{}={}", asked.address.port(), asked.token);
    let answer = asked.raw("/", "evil.example", &cookie);
    assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
    let local = format!("localhost:{}", asked.address.port());
    assert!(asked.raw("/", &local, &cookie).starts_with("HTTP/1.1 200"));
}

#[test]
fn names_are_shown_as_text_and_pages_contain_no_script() {
    let asked = started();
    let list = asked.get("/records");
    assert!(list.starts_with("HTTP/1.1 200"), "{list}");
    assert!(!list.contains("<script"), "{list}");
    assert!(list.contains("&#60;script&#62;alert(1)"), "{list}");
    assert!(list.contains("a\\e[2J"), "{list}");
    let page = asked.get(&format!("/record/{}", asked.record));
    assert!(
        page.contains("<script src=\"/assets/bundle.js\"></script>"),
        "{page}"
    );
    for tag in page.split("<script").skip(1) {
        let is_data = tag.starts_with(" type=\"application/");
        assert!(is_data || tag.starts_with(" src="), "{tag}");
    }
}

/// Extracts the secret of forms from the HTML of a page.
fn key(page: &str) -> &str {
    let (_, rest) = page.split_once("name=\"key\" value=\"").unwrap();
    rest.split_once('"').unwrap().0
}

#[test]
fn nothing_is_stopped_or_resumed_but_from_a_page_of_this_server() {
    let asked = started();
    let store = Store::open(asked.dir.path()).unwrap();
    let note = CampaignNote {
        name: "quick".into(),
        generation: 1,
        variants: vec!["<b>a</b>".into()],
        entries: vec![Entry {
            key: "none".into(),
            ..Entry::default()
        }],
        ..CampaignNote::default()
    };
    store.note(&note).unwrap();
    let state = RunState {
        name: "quick".into(),
        arguments: vec!["run".into(), "<i>.toml".into()],
        folder: "/".into(),
        end: RunEnd::Stopped,
        ..RunState::default()
    };
    store.note_run(&state).unwrap();
    let page = asked.get("/campaigns");
    assert!(page.contains("0 of 1 trials"), "{page}");
    // The campaign's name is quoted for a shell, and escaped for HTML.
    assert!(page.contains("run &#39;&#60;i&#62;.toml&#39;"), "{page}");
    let right = format!("key={}", key(&page));
    let resume = "/campaigns/quick/resume";
    for (more, form) in [
        ("", ""),
        ("", "key=0123456789abcdef0123456789abcdef"),
        ("Origin: http://evil.example\r\n", right.as_str()),
        ("Origin: null\r\n", &right),
        ("Sec-Fetch-Site: cross-site\r\n", &right),
        ("Sec-Fetch-Site: same-site\r\n", &right),
    ] {
        for path in [resume, "/campaigns/quick/stop"] {
            let answer = asked.post(path, more, form);
            let refused = answer.starts_with("HTTP/1.1 403") || answer.starts_with("HTTP/1.1 422");
            assert!(refused, "{more}{form}: {answer}");
        }
    }
    // A link or image on another site sends a GET request, which has no effect.
    assert!(asked.get(resume).starts_with("HTTP/1.1 405"));
    // The form is accepted; the test's replacement for the program ends at once.
    let own = format!(
        "Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n",
        asked.address
    );
    let answer = asked.post(resume, &own, &right);
    assert!(answer.contains("The run ended at once"), "{answer}");
    let answer = asked.post("/campaigns/quick/stop", &own, &right);
    assert!(answer.contains("does not run any more"), "{answer}");
    let answer = asked.post("/campaigns/..%2fquick/stop", &own, &right);
    assert!(answer.contains("no such campaign"), "{answer}");
}

#[test]
fn missing_things_are_reported_in_a_sentence() {
    let asked = started();
    for path in [
        "/record/ffff",
        "/campaign/..%2fx",
        "/compare?a=1",
        "/nowhere",
    ] {
        let answer = asked.get(path);
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
    }
    let empty = asked.get("/campaigns");
    assert!(
        empty.contains("No campaign has run in this store"),
        "{empty}"
    );
}
