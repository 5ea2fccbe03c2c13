//! A small element tree, read with suspicion: no DOCTYPE, so no entities of its own; bounded depth.

use quick_xml::NsReader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;
use quick_xml::name::ResolveResult;

const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// SOAP answers are about ten deep.
const MAX_DEPTH: usize = 64;

/// An element: namespace and local name, its text, and its children.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The local part of `xsi:type`, whatever its prefix; empty when there is none.
    pub(super) xsi_type: String,
    /// The attribute `type` of no namespace, which names the kind of a managed object.
    pub(super) kind: String,
    pub(super) text: String,
    pub(super) children: Vec<Element>,
}

impl Element {
    /// The first child of this local name.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// All children of this local name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Whether this is that element of that namespace.
    pub(super) fn is(&self, namespace: &str, name: &str) -> bool {
        self.namespace == namespace && self.name == name
    }

    /// The text of the first child of this name, without the space around it; empty when there is none.
    pub(super) fn text_of(&self, name: &str) -> String {
        self.child(name).map(|child| child.text.trim().to_owned()).unwrap_or_default()
    }
}

/// Reads a document. The error is a phrase for people.
pub(super) fn parse(text: &str) -> Result<Element, String> {
    parse_each(text, "", &mut |_| {})
}

/// The same, but elements of this local name are handed over one by one as they end, and are not kept: a long list takes no more
/// memory than its longest item.
pub(super) fn parse_each(text: &str, name: &str, each: &mut dyn FnMut(Element)) -> Result<Element, String> {
    let mut reader = NsReader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut open: Vec<Element> = vec![];
    loop {
        let (namespace, event) = reader.read_resolved_event().map_err(|error| format!("it is not XML ({error})"))?;
        match event {
            Event::Start(start) => {
                if open.len() == MAX_DEPTH {
                    return Err(format!("it is nested deeper than {MAX_DEPTH} elements"));
                }
                let namespace = match namespace {
                    ResolveResult::Bound(namespace) => namespace.into_inner().to_owned(),
                    ResolveResult::Unbound => String::new(),
                    ResolveResult::Unknown(_) => return Err("it uses a namespace prefix that it does not declare".to_owned()),
                };
                let mut element = Element {
                    namespace,
                    name: start.local_name().into_inner().to_owned(),
                    ..Element::default()
                };
                for attribute in start.attributes() {
                    let attribute = attribute.map_err(|error| format!("it has a bad attribute ({error})"))?;
                    let (namespace, name) = reader.resolver().resolve_attribute(attribute.key);
                    if name.into_inner() != "type" {
                        continue;
                    }
                    let value = attribute
                        .normalized_value(quick_xml::XmlVersion::Implicit1_0)
                        .map_err(|error| format!("it has a bad attribute ({error})"))?;
                    match namespace {
                        ResolveResult::Bound(namespace) if namespace.into_inner() == XSI => {
                            value.rsplit(':').next().unwrap_or_default().clone_into(&mut element.xsi_type);
                        }
                        ResolveResult::Unbound => element.kind = value.into_owned(),
                        _ => {}
                    }
                }
                open.push(element);
            }
            Event::End(_) => {
                let done = open.pop().ok_or("it closes an element that is not open")?;
                match open.last_mut() {
                    Some(_) if done.name == name => each(done),
                    Some(parent) => parent.children.push(done),
                    None => return Ok(done),
                }
            }
            Event::Text(part) => push(&mut open, &part)?,
            Event::CData(part) => push(&mut open, &part)?,
            Event::GeneralRef(reference) => {
                let character = reference
                    .resolve_char_ref()
                    .map_err(|error| format!("it refers to no character ({error})"))?;
                match (character, resolve_predefined_entity(&reference)) {
                    (Some(character), _) => push(&mut open, character.encode_utf8(&mut [0; 4]))?,
                    (None, Some(text)) => push(&mut open, text)?,
                    (None, None) => return Err("it refers to an entity that XML does not define".to_owned()),
                }
            }
            Event::DocType(_) => return Err("it declares a DOCTYPE, which SOAP forbids".to_owned()),
            Event::Eof => return Err("it ends in the middle".to_owned()),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

fn push(open: &mut [Element], text: &str) -> Result<(), String> {
    match open.last_mut() {
        Some(element) => element.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err("it has text outside of any element".to_owned()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_namespaces() {
        let tree =
            parse("<?xml version=\"1.0\"?>\n<a:x xmlns:a='urn:a' xmlns='urn:b'><y>1 &lt; 2 &amp;&#x26; <![CDATA[<3>]]></y><z/></a:x>")
                .expect("XML");
        assert!(tree.is("urn:a", "x") && tree.children[0].is("urn:b", "y"));
        assert_eq!(tree.text_of("y"), "1 < 2 && <3>");
        assert_eq!(tree.text_of("z"), "");
        assert_eq!(tree.text_of("absent"), "");
    }

    /// A managed object bears `type` twice: of no namespace, and of the schema's under any prefix.
    #[test]
    fn types_are_told_apart_by_namespace() {
        let tree = parse(
            "<v xmlns:q='http://www.w3.org/2001/XMLSchema-instance' xmlns:xsi='urn:other' xmlns:w='urn:vim25' \
             type='Folder' q:type='w:ManagedObjectReference' xsi:type='nothing'>group-d1</v>",
        )
        .expect("XML");
        assert_eq!((tree.kind.as_str(), tree.xsi_type.as_str()), ("Folder", "ManagedObjectReference"));
        assert!(parse("<a type='1' type='2'/>").expect_err("twice").contains("attribute"));
    }

    #[test]
    fn long_lists_are_handed_over() {
        let mut seen = vec![];
        let tree = parse_each("<r><o>1</o><token>t</token><o>2</o></r>", "o", &mut |item| seen.push(item.text)).expect("XML");
        assert_eq!(
            (seen, tree.children.len(), tree.text_of("token")),
            (vec!["1".to_owned(), "2".into()], 1, "t".into())
        );
    }

    #[test]
    fn hostile_documents_are_refused() {
        let deep = "<a>".repeat(100_000);
        for (text, reason) in [
            ("", "ends in the middle"),
            ("hello", "outside"),
            ("<a><b></a>", "not XML"),
            ("<a><b>", "ends in the middle"),
            ("<q:a/>", "prefix"),
            ("<!DOCTYPE a [<!ENTITY x 'xx'>]><a>&x;</a>", "DOCTYPE"),
            ("<a>&x;</a>", "entity"),
            ("<a>&#0;</a>", "character"),
            ("<a>&#x110000;</a>", "character"),
            (&deep, "deeper"),
        ] {
            let error = parse(text).expect_err(reason);
            assert!(error.contains(reason), "{error} does not say {reason:?}");
        }
    }
}
