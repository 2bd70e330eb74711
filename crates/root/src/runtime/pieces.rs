//! Splits a shell command into words and operators. Source: POSIX.1-2017, XCU 2.2 to 2.3, 2.6 and 2.7.

use std::iter::Peekable;
use std::str::CharIndices;

/// Maximum depth of commands that are nested in double quotes.
const MAX_DEPTH: u32 = 16;

/// A token of a shell command's text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A word, without quotes.
    Word(String),
    /// A word of which some part is known only when the shell runs.
    Unknown,
    /// The end of a command, such as `;` or a newline.
    End,
    /// A redirection operator; the next token is its file.
    Redirection,
    /// The start of a nested command or of a group.
    Open,
    /// The end of a nested command or of a group.
    Close,
}

/// Splits a shell command's text into tokens. Commands within `$( )` and backticks become tokens too. Here-documents
/// are skipped.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let mut cutter = Cutter {
        text,
        letters: text.char_indices().peekable(),
        pieces: Vec::new(),
        word: None,
        is_unknown: false,
        in_ticks: false,
        depth: 0,
        documents: Vec::new(),
    };
    while let Some((at, c)) = cutter.letters.next() {
        cutter.letter(at, c);
    }
    cutter.end_word();
    cutter.pieces
}

struct Cutter<'a> {
    text: &'a str,
    letters: Peekable<CharIndices<'a>>,
    pieces: Vec<Piece>,
    /// Part of the current word read so far; `None` between words.
    word: Option<String>,
    /// True if a part of the current word is known only when the shell runs.
    is_unknown: bool,
    /// True if a backtick is open.
    in_ticks: bool,
    /// Current depth of commands that are nested in double quotes.
    depth: u32,
    /// Delimiters of the here-documents that begin on the next line.
    documents: Vec<String>,
}

impl<'a> Cutter<'a> {
    fn letter(&mut self, at: usize, c: char) {
        match c {
            '\\' => {
                if let Some((_, next)) = self.letters.next().filter(|(_, next)| *next != '\n') {
                    self.word().push(next);
                }
            }
            '\'' => {
                let quoted: String = (self.letters.by_ref().map(|(_, c)| c))
                    .take_while(|c| *c != '\'')
                    .collect();
                self.word().push_str(&quoted);
            }
            '"' => self.quoted(),
            '#' if self.word.is_none() => while self.next_if(|c| c != '\n').is_some() {},
            '$' => self.dollar(),
            '*' | '?' | '~' => {
                self.word();
                self.is_unknown = true;
            }
            '`' => {
                self.end_word();
                self.in_ticks = !self.in_ticks;
                let piece = if self.in_ticks {
                    Piece::Open
                } else {
                    Piece::Close
                };
                self.pieces.push(piece);
            }
            '(' => self.end_with(Piece::Open),
            ')' => self.end_with(Piece::Close),
            '<' | '>' => self.redirection(c),
            '\n' => {
                self.end_with(Piece::End);
                self.skip_documents(at + 1);
            }
            ';' | '&' | '|' => {
                self.end_with(Piece::End);
                // After `;;`, the next pattern of a `case` follows.
                if c == ';' && self.next_if(|c| c == ';').is_some() {
                    let words = ["case", "in"].map(|word| Piece::Word(word.to_owned()));
                    self.pieces.extend(words);
                }
            }
            c if c.is_whitespace() => self.end_word(),
            c => self.word().push(c),
        }
    }

    fn word(&mut self) -> &mut String {
        self.word.get_or_insert_default()
    }

    fn end_word(&mut self) {
        let is_unknown = std::mem::take(&mut self.is_unknown);
        if let Some(word) = self.word.take() {
            let piece = if is_unknown {
                Piece::Unknown
            } else {
                Piece::Word(word)
            };
            self.pieces.push(piece);
        }
    }

    fn end_with(&mut self, piece: Piece) {
        self.end_word();
        self.pieces.push(piece);
    }

    fn next_if(&mut self, is_it: impl Fn(char) -> bool) -> Option<char> {
        self.letters.next_if(|(_, c)| is_it(*c)).map(|(_, c)| c)
    }

    /// Returns the text that is not read yet.
    fn rest(&mut self) -> &'a str {
        let at = self.letters.peek().map_or(self.text.len(), |(at, _)| *at);
        &self.text[at..]
    }

    /// Returns true if the text after a dollar sign is a command in parentheses. An arithmetic expression, which begins
    /// with two parentheses, is none.
    fn is_command_next(&mut self) -> bool {
        self.rest().starts_with('(') && !self.rest().starts_with("((")
    }

    /// Skips the text up to this byte offset.
    fn go_to(&mut self, place: usize) {
        while self.letters.next_if(|(at, _)| *at < place).is_some() {}
    }

    /// Reads the content of double quotes, up to the closing quote.
    fn quoted(&mut self) {
        self.word();
        while let Some((_, c)) = self.letters.next() {
            match c {
                '"' => break,
                '\\' => {
                    let next = self.letters.next();
                    self.word().extend(next.map(|(_, c)| c));
                }
                '$' if self.depth < MAX_DEPTH && self.is_command_next() => self.nested(),
                '$' | '`' => self.is_unknown = true,
                c => self.word().push(c),
            }
        }
    }

    /// Reads a command in parentheses that is within double quotes, up to the closing parenthesis.
    fn nested(&mut self) {
        let word = self.word.take();
        self.dollar();
        self.depth += 1;
        let (mut open, mut read) = (1_u32, self.pieces.len());
        while open > 0
            && let Some((at, c)) = self.letters.next()
        {
            self.letter(at, c);
            for piece in &self.pieces[read..] {
                match piece {
                    Piece::Open => open += 1,
                    Piece::Close => open = open.saturating_sub(1),
                    _ => {}
                }
            }
            read = self.pieces.len();
        }
        self.depth -= 1;
        // A word that begins like an assignment stays known, because only its beginning matters.
        self.is_unknown = word.as_ref().is_none_or(|word| !word.contains('='));
        self.word = Some(word.unwrap_or_default());
    }

    /// Reads the text after a dollar sign: a command, an arithmetic expression or a variable.
    fn dollar(&mut self) {
        let is_sum = self.rest().starts_with("((");
        if is_sum {
            let rest = self.rest();
            let length = rest.find("))").map_or(rest.len(), |end| end + 2);
            let end = self.text.len() - rest.len() + length;
            self.go_to(end);
        } else if self.next_if(|c| c == '(').is_some() {
            // The word continues after the expansion, whose value is unknown.
            self.word = None;
            self.is_unknown = false;
            self.pieces.push(Piece::Open);
            return;
        } else if self.next_if(|c| c == '{').is_some() {
            while self.next_if(|c| c != '}').is_some() {}
            self.letters.next();
        }
        self.word();
        self.is_unknown = true;
    }

    fn redirection(&mut self, first: char) {
        // A word such as the `2` in `2>` is the number of a file descriptor.
        let number = |word: &String| word.chars().all(|c| c.is_ascii_digit());
        if self.word.as_ref().is_some_and(number) {
            self.word = None;
        }
        self.end_word();
        let mut operator = first.to_string();
        while let Some(c) = self.next_if(|c| matches!(c, '<' | '>' | '&' | '|' | '-')) {
            operator.push(c);
        }
        if matches!(operator.as_str(), "<<" | "<<-") {
            let mark = self.rest().split_whitespace().next().unwrap_or_default();
            let mark = mark.trim_matches(['"', '\'', '\\', ';']).to_owned();
            self.documents.push(mark);
        }
        self.pieces.push(Piece::Redirection);
        // `>&-` has no file.
        if operator.ends_with('-') && operator != "<<-" {
            self.pieces.push(Piece::Unknown);
        }
    }

    /// Skips the here-documents that begin at byte offset `from`. Each ends with its delimiter.
    fn skip_documents(&mut self, mut from: usize) {
        for mark in std::mem::take(&mut self.documents) {
            for line in self.text[from..].split_inclusive('\n') {
                from += line.len();
                if line.trim() == mark {
                    break;
                }
            }
        }
        self.go_to(from);
    }
}
