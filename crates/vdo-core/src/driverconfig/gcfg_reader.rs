// SPDX-License-Identifier: Apache-2.0
//! Reads gcfg, the INI dialect of both drivers (`gopkg.in/gcfg.v1`), as the drivers read it, with the line of each value.
//!
//! Names of sections and keys have any case, those of subsections do not. Outside of quotes `;` and `#` begin a comment, and a backslash at
//! the end of a line joins the next one; inside of quotes there are the escapes `\\`, `\"`, `\n` and `\t`. A key may have no value.

use std::borrow::Cow;
use vdo_api::types::Remedy;

/// A key of a file.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its section, in lower case.
    pub section: String,
    /// The subsection, as it is written.
    pub subsection: Option<String>,
    /// The key, in lower case.
    pub key: String,
    /// The value; `None` of a key that stands alone. It may be a password, so that nothing prints an entry.
    pub value: Option<String>,
    /// The line, from 1.
    pub line: usize,
}

/// The header of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its name, in lower case.
    pub name: String,
    /// The subsection, as it is written.
    pub subsection: Option<String>,
    /// The line, from 1.
    pub line: usize,
}

/// What is in a file.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// The headers, in their order.
    pub sections: Vec<Section>,
    /// The keys, in their order. Of several of one name the driver takes the last.
    pub entries: Vec<Entry>,
}

impl Contents {
    /// The value of a key of a section without subsection.
    #[must_use]
    pub fn get(&self, section: &str, key: &str) -> Option<&str> {
        self.value(section, None, key)
    }

    /// The value of a key of a section, or of one of its subsections.
    #[must_use]
    pub fn value(&self, section: &str, subsection: Option<&str>, key: &str) -> Option<&str> {
        let of = |entry: &&Entry| entry.section == section && entry.subsection.as_deref() == subsection && entry.key == key;
        self.entries.iter().rev().find(of).and_then(|entry| entry.value.as_deref())
    }
}

/// A driver does not read the file. No value is part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ReadError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There are bytes of another encoding.
    #[error("the text is not UTF-8")]
    Encoding,
    /// Editors of Windows write it.
    #[error("the text begins with a byte order mark")]
    ByteOrderMark,
    /// A character that no text has.
    #[error("the text has a NUL character")]
    Nul,
    /// A key before the first header.
    #[error("a key is written before the first section")]
    NoSection,
    /// The header is not one.
    #[error("the header of a section is neither [name] nor [name \"subsection\"]")]
    Header,
    /// A subsection without a name.
    #[error("the subsection has no name")]
    EmptySubsection,
    /// A line that is neither header, key nor comment.
    #[error("the line is neither a section, a key nor a comment")]
    Line,
    /// No closing quote.
    #[error("a quoted text does not end in its line")]
    Quote,
    /// A backslash before a character that needs none.
    #[error("a backslash in quotes is followed by another character than \\, \", n or t")]
    Escape,
    /// A backslash outside of quotes.
    #[error("a backslash is written outside of quotes")]
    Backslash,
}

impl Remedy for ReadError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(match self.problem {
            Problem::Encoding | Problem::ByteOrderMark | Problem::Nul => "Save it as UTF-8 without a byte order mark.".into(),
            Problem::NoSection => "Write the section above the key, for example [Global].".into(),
            Problem::Header | Problem::EmptySubsection => "Write [VirtualCenter \"vcenter.example.com\"].".into(),
            Problem::Line => "Write key = \"value\".".into(),
            Problem::Quote | Problem::Escape | Problem::Backslash => {
                "Put the value in quotes, and write \\\\ for a backslash and \\\" for a quote.".into()
            }
        })
    }
}

/// Reads a file.
///
/// # Errors
/// Where a driver refuses it, with the line.
pub fn read(bytes: &[u8]) -> Result<Contents, ReadError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        at(lines_in(before), Problem::Encoding)
    })?;
    if text.starts_with('\u{feff}') {
        return Err(at(1, Problem::ByteOrderMark));
    }
    if let Some((before, _)) = text.split_once('\0') {
        return Err(at(lines_in(before.as_bytes()), Problem::Nul));
    }
    let (contents, error) = scan(text);
    error.map_or(Ok(contents), Err)
}

/// What can be read of a file, whatever else is wrong with it.
#[must_use]
pub fn read_partly(bytes: &[u8]) -> Contents {
    let text = String::from_utf8_lossy(bytes);
    scan(text.trim_start_matches('\u{feff}')).0
}

/// All lines that can be read, and the first error.
fn scan(text: &str) -> (Contents, Option<ReadError>) {
    let mut scanner = Scanner {
        left: text.chars().collect::<Vec<_>>().into_iter().peekable(),
        line: 1,
    };
    let (mut contents, mut first) = (Contents::default(), None);
    while scanner.skip_to_statement() {
        if let Err(error) = scanner.statement(&mut contents) {
            first.get_or_insert(error);
            scanner.skip(|_| true);
        }
    }
    (contents, first)
}

const fn at(line: usize, problem: Problem) -> ReadError {
    ReadError { line, problem }
}

fn lines_in(before: &[u8]) -> usize {
    before.iter().filter(|byte| **byte == b'\n').count().saturating_add(1)
}

/// A letter of a name, as gcfg has them.
fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || (!c.is_ascii() && c.is_alphabetic())
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r')
}

struct Scanner {
    left: std::iter::Peekable<std::vec::IntoIter<char>>,
    line: usize,
}

impl Scanner {
    fn next(&mut self) -> Option<char> {
        let next = self.left.next();
        if next == Some('\n') {
            self.line = self.line.saturating_add(1);
        }
        next
    }

    fn skip(&mut self, while_it_is: impl Fn(char) -> bool) {
        while self.left.next_if(|c| while_it_is(*c) && *c != '\n').is_some() {}
    }

    /// Goes to the next header or key; whether there is one.
    fn skip_to_statement(&mut self) -> bool {
        loop {
            self.skip(is_blank);
            match self.left.peek() {
                None => return false,
                Some('\n') => drop(self.next()),
                Some(';' | '#') => self.skip(|_| true),
                Some(_) => return true,
            }
        }
    }

    fn statement(&mut self, contents: &mut Contents) -> Result<(), ReadError> {
        match (self.left.peek(), contents.sections.last().cloned()) {
            (Some('['), _) => contents.sections.push(self.header()?),
            (_, None) => return Err(at(self.line, Problem::NoSection)),
            (Some(c), Some(section)) if is_letter(*c) => contents.entries.push(self.entry(section)?),
            _ => return Err(at(self.line, Problem::Line)),
        }
        Ok(())
    }

    /// Whether the line ends here, but for blanks and a comment.
    fn ends(&mut self) -> bool {
        self.skip(is_blank);
        matches!(self.left.peek(), None | Some('\n' | ';' | '#'))
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.left.next_if(|c| is_letter(*c) || c.is_numeric() || *c == '-') {
            name.extend(c.to_lowercase());
        }
        name
    }

    fn header(&mut self) -> Result<Section, ReadError> {
        let line = self.line;
        let wrong = || at(line, Problem::Header);
        self.next();
        self.skip(is_blank);
        if !self.left.peek().is_some_and(|c| is_letter(*c)) {
            return Err(wrong());
        }
        let name = self.name();
        self.skip(is_blank);
        let mut subsection = None;
        if self.left.next_if_eq(&'"').is_some() {
            let text = self.subsection()?;
            if text.is_empty() {
                return Err(at(line, Problem::EmptySubsection));
            }
            subsection = Some(text);
            self.skip(is_blank);
        }
        let closed = self.left.next_if_eq(&']').is_some();
        if !closed || !self.ends() {
            return Err(wrong());
        }
        Ok(Section { name, subsection, line })
    }

    /// The rest of a quoted name.
    fn subsection(&mut self) -> Result<String, ReadError> {
        let mut text = String::new();
        loop {
            match self.left.peek().copied() {
                None | Some('\n') => return Err(at(self.line, Problem::Quote)),
                Some('"') => {
                    self.next();
                    return Ok(text);
                }
                Some('\\') => {
                    self.next();
                    match self.next() {
                        Some(c @ ('\\' | '"')) => text.push(c),
                        _ => return Err(at(self.line, Problem::Escape)),
                    }
                }
                Some('\r') => drop(self.next()),
                Some(c) => {
                    self.next();
                    text.push(c);
                }
            }
        }
    }

    fn entry(&mut self, section: Section) -> Result<Entry, ReadError> {
        let line = self.line;
        let key = self.name();
        let value = match self.ends() {
            true => None,
            false if self.left.next_if_eq(&'=').is_some() => Some(self.value()?),
            false => return Err(at(line, Problem::Line)),
        };
        Ok(Entry {
            section: section.name,
            subsection: section.subsection,
            key,
            value,
            line,
        })
    }

    /// What stands behind the equals sign: plain and quoted parts, one after another.
    fn value(&mut self) -> Result<String, ReadError> {
        self.skip(is_blank);
        let (mut text, mut kept, mut quoted) = (String::new(), 0, false);
        loop {
            match (self.left.peek().copied(), quoted) {
                (None | Some('\n'), true) => return Err(at(self.line, Problem::Quote)),
                (None | Some('\n' | ';' | '#'), false) => break,
                (Some('"'), _) => quoted = !quoted,
                (Some('\r'), _) => {}
                (Some('\\'), _) => {
                    self.next();
                    text.extend(self.escaped(quoted)?);
                    // The escape has been read whole, but for its last character.
                }
                (Some(c), _) => text.push(c),
            }
            let last = self.next();
            if quoted || !last.is_some_and(is_blank) {
                kept = text.len();
            }
        }
        text.truncate(kept);
        Ok(text)
    }

    /// The character behind a backslash, which stays to be taken.
    fn escaped(&mut self, quoted: bool) -> Result<Option<char>, ReadError> {
        if !quoted {
            while self.left.next_if_eq(&'\r').is_some() {}
        }
        match (self.left.peek(), quoted) {
            (Some('\\'), true) => Ok(Some('\\')),
            (Some('"'), _) => Ok(Some('"')),
            (Some('n'), true) => Ok(Some('\n')),
            (Some('t'), true) => Ok(Some('\t')),
            (Some('\n'), false) => Ok(None),
            (_, true) => Err(at(self.line, Problem::Escape)),
            (_, false) => Err(at(self.line, Problem::Backslash)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<Option<String>, Problem> {
        let contents = read(format!("[Global]\n{text}\n").as_bytes()).map_err(|error| error.problem)?;
        Ok(contents.get("global", "k").map(str::to_owned))
    }

    #[test]
    fn gcfg_value_each_spelling_is_read_as_the_driver_reads_it() {
        for (text, expected) in [
            (r#"k = "DOM\\user""#, Ok("DOM\\user")),
            (r#"K = "a\"b""#, Ok("a\"b")),
            (r#"k = "a\tb\nc""#, Ok("a\tb\nc")),
            ("k = a;b", Ok("a")),
            ("k = a # b", Ok("a")),
            (r#"k = "a;b#c""#, Ok("a;b#c")),
            ("k = 'a b'", Ok("'a b'")),
            ("k =   a  b  ", Ok("a  b")),
            ("k = \" a \"", Ok(" a ")),
            ("k = a\"b c\"d", Ok("ab cd")),
            ("k = a\"b c\"  d  ", Ok("ab c  d")),
            ("k=a=b", Ok("a=b")),
            ("k =", Ok("")),
            ("k = \"\"", Ok("")),
            ("k = a\\\nb", Ok("ab")),
            ("k = a\\\r\nb", Ok("ab")),
            ("k = a\\\"b", Ok("a\"b")),
            ("k = \"a\tb\"", Ok("a\tb")),
            ("k = \"a\rb\"\r", Ok("ab")),
            ("k = first\nk = last", Ok("last")),
            ("k = é ü", Ok("é ü")),
            (r#"k = "a\qb""#, Err(Problem::Escape)),
            ("k = \"a\nb\"", Err(Problem::Quote)),
            (r"k = a\b", Err(Problem::Backslash)),
            (r"k = a\\b", Err(Problem::Backslash)),
            ("k a", Err(Problem::Line)),
            ("= a", Err(Problem::Line)),
            ("k = a\n[", Err(Problem::Header)),
            ("k = a\n[X \"\"]", Err(Problem::EmptySubsection)),
            ("k = a\n[X \"y]", Err(Problem::Quote)),
            ("k = a\n[X y]", Err(Problem::Header)),
            ("k = a\n[X] y", Err(Problem::Header)),
        ] {
            assert_eq!(value(text), expected.map(|text| Some(text.to_owned())), "{text:?}");
        }
        assert_eq!(value("k"), Ok(None));
    }

    #[test]
    fn gcfg_file_sections_keys_and_lines_are_found() {
        let text =
            "; a comment\r\n[GLOBAL]\r\n\r\nInsecure-Flag\r\n[ virtualCenter \"A\\\\b\\\"c\" ] # more\r\nuser = x\\\n y\r\nport=\"443\"";
        let contents = read(text.as_bytes()).expect("a file");
        let sections: Vec<_> = contents
            .sections
            .iter()
            .map(|s| (s.name.as_str(), s.subsection.as_deref(), s.line))
            .collect();
        assert_eq!(sections, [("global", None, 2), ("virtualcenter", Some("A\\b\"c"), 5)]);
        let entries: Vec<_> = contents
            .entries
            .iter()
            .map(|e| (e.key.as_str(), e.value.as_deref(), e.line))
            .collect();
        assert_eq!(
            entries,
            [("insecure-flag", None, 4), ("user", Some("x y"), 6), ("port", Some("443"), 8)]
        );
    }

    #[test]
    fn gcfg_file_with_a_broken_line_is_read_partly() {
        let contents = read_partly(b"\xEF\xBB\xBF[Global]\nuser = DOM\\x\nport = \"4\xFF\ncluster-id = c1\n");
        assert_eq!(contents.get("global", "cluster-id"), Some("c1"));
    }

    #[test]
    fn gcfg_file_no_driver_reads_is_refused_with_its_line() {
        for (bytes, line, problem) in [
            (&b"\xEF\xBB\xBF[Global]\n"[..], 1, Problem::ByteOrderMark),
            (b"[Global]\nk = \"\xFF\"\n", 2, Problem::Encoding),
            (b"\xFF\xFE[\0G\0", 1, Problem::Encoding),
            (b"[Global]\n\nk = \0\n", 3, Problem::Nul),
            (b"\nk = 1\n", 2, Problem::NoSection),
            (b"global:\n  k: 1\n", 1, Problem::NoSection),
        ] {
            assert_eq!(read(bytes).err(), Some(ReadError { line, problem }), "{bytes:?}");
        }
    }
}
