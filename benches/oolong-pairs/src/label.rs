//! The six labels, and the instances from which each can be told.

use rand::RngExt as _;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom as _;

/// The kind of answer that an instance asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Label {
    /// A description or an abstract concept.
    Description,
    /// An entity.
    Entity,
    /// A human being.
    Human,
    /// A numeric value.
    Number,
    /// A location.
    Location,
    /// An abbreviation.
    Abbreviation,
}

/// The pattern of an instance: its head, the list of words that follow, and its tail. Its head belongs to no other pattern.
struct Template {
    label: Label,
    head: &'static str,
    words: &'static [&'static str],
    tail: &'static str,
}

const fn template(
    label: Label,
    head: &'static str,
    words: &'static [&'static str],
    tail: &'static str,
) -> Template {
    Template { label, head, words, tail }
}

const WORKS: &[&str] = &[
    "the Ballad of the Blue Ferry",
    "the symphony in four seasons",
    "the Almanac of Small Islands",
    "the mosaic of the old market hall",
    "the opera about the clockmaker",
    "the first map of the northern coast",
    "the Book of Unfinished Bridges",
    "the poem on the glass wall",
];
const PLACES: &[&str] = &[
    "Harbour Street",
    "the valley of the two rivers",
    "the old observatory",
    "Saint Olaf's Bay",
    "the salt road",
    "the lighthouse of Veldra",
    "the second cataract",
    "the Amber Gate",
];
const THINGS: &[&str] = &[
    "a sundial",
    "a suspension bridge",
    "a tide mill",
    "a beehive in winter",
    "a pendulum clock",
    "a vaccine",
    "an hourglass",
    "a paper kite",
];
const DEEDS: &[&str] = &[
    "cross the strait in a rowing boat",
    "measure the height of a cloud",
    "print a newspaper in two colours",
    "keep bees on a roof",
    "sail against the wind",
    "write music for three choirs",
    "read a book by touch",
    "fly a balloon over the pole",
];
const COUNTED: &[&str] = &[
    "steps lead up to the bell tower",
    "strings does a concert harp have",
    "days does the comet stay visible",
    "letters are in the longest place name",
    "moons circle the sixth planet",
    "bones are in a human hand",
    "ships came back from the expedition",
    "litres does the fountain lose in a day",
];
const KINDS: &[&str] = &[
    "animal sleeps with one eye open",
    "instrument is tuned in fifths",
    "plant flowers once in a hundred years",
    "metal is liquid in a warm room",
    "sport is played on a frozen lake",
    "language is whistled across valleys",
    "stone floats on water",
    "bird builds a nest of mud",
];
const SHORT: &[&str] =
    &["QRPX", "the letters B.L.T.O.", "UVEX", "HALM", "the sign KWT", "TOSR", "DIPL", "MBKF"];
const LONG: &[&str] = &[
    "the union of harbour pilots",
    "a measure of water per second",
    "the office for weights and measures",
    "a doctor of letters",
    "the society of friends of the railway",
    "before the beginning of records",
    "the committee on public clocks",
    "a mile on the sea",
];

const TEMPLATES: &[Template] = &[
    template(Label::Description, "What does it mean to ", DEEDS, "?"),
    template(Label::Description, "Why would somebody want to ", DEEDS, " at night?"),
    template(Label::Description, "How does ", THINGS, " work?"),
    template(Label::Description, "What is the idea behind ", THINGS, "?"),
    template(Label::Entity, "Which ", KINDS, "?"),
    template(Label::Entity, "Tell me what ", KINDS, ", if there is one."),
    template(Label::Entity, "What material is best for ", THINGS, "?"),
    template(Label::Entity, "What was the favourite food of those who first dared to ", DEEDS, "?"),
    template(Label::Human, "Who wrote ", WORKS, "?"),
    template(Label::Human, "Who was the first to ", DEEDS, "?"),
    template(Label::Human, "By whom was ", WORKS, " lost and found again?"),
    template(Label::Human, "After whom is ", PLACES, " named?"),
    template(Label::Number, "How many ", COUNTED, "?"),
    template(Label::Number, "In which year was ", WORKS, " finished?"),
    template(Label::Number, "What percentage of people can ", DEEDS, "?"),
    template(Label::Number, "At what temperature does ", THINGS, " begin to fail?"),
    template(Label::Location, "Where is ", PLACES, "?"),
    template(Label::Location, "In which country was ", WORKS, " shown first?"),
    template(Label::Location, "On which island do people still ", DEEDS, "?"),
    template(Label::Location, "Through which town does one come on the way to ", PLACES, "?"),
    template(Label::Abbreviation, "For which words does one write ", SHORT, "?"),
    template(Label::Abbreviation, "Spell out ", SHORT, ", please."),
    template(Label::Abbreviation, "What is the short form of ", LONG, "?"),
    template(Label::Abbreviation, "With which letters is ", LONG, " abbreviated?"),
];

impl Label {
    /// All labels.
    pub const ALL: [Self; 6] = [
        Self::Description,
        Self::Entity,
        Self::Human,
        Self::Number,
        Self::Location,
        Self::Abbreviation,
    ];

    /// Returns the letter by which answers name it.
    pub const fn letter(self) -> char {
        match self {
            Self::Description => 'D',
            Self::Entity => 'E',
            Self::Human => 'H',
            Self::Number => 'N',
            Self::Location => 'L',
            Self::Abbreviation => 'A',
        }
    }

    /// Returns its name in questions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Description => "description and abstract concept",
            Self::Entity => "entity",
            Self::Human => "human being",
            Self::Number => "numeric value",
            Self::Location => "location",
            Self::Abbreviation => "abbreviation",
        }
    }

    /// Reads the letter of a label.
    pub fn of_letter(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|label| letter.chars().eq([label.letter()]))
    }

    /// Returns the label of an instance; none for a text that no pattern gives.
    pub fn of(instance: &str) -> Option<Self> {
        let is_of = |template: &&Template| {
            let rest = instance.strip_prefix(template.head);
            rest.and_then(|rest| rest.strip_suffix(template.tail))
                .is_some_and(|word| template.words.contains(&word))
        };
        TEMPLATES.iter().find(is_of).map(|template| template.label)
    }

    /// Returns an instance with this label.
    pub(crate) fn instance(self, random: &mut Xoshiro256PlusPlus) -> String {
        let own = || TEMPLATES.iter().filter(|template| template.label == self);
        let nth = random.random_range(0..own().count());
        let template = own().nth(nth).expect("the number is below the count");
        let word = template.words.choose(random).expect("each list has words");
        format!("{}{word}{}", template.head, template.tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_has_one_label() {
        for template in TEMPLATES {
            for word in template.words {
                let text = format!("{}{word}{}", template.head, template.tail);
                assert_eq!(Label::of(&text), Some(template.label), "{text}");
            }
            let with_this_head =
                TEMPLATES.iter().filter(|other| template.head.starts_with(other.head)).count();
            let others = TEMPLATES
                .iter()
                .filter(|other| {
                    other.head != template.head && template.head.starts_with(other.head)
                })
                .count();
            assert_eq!(with_this_head - others, 1, "`{}` begins two patterns", template.head);
        }
        assert_eq!(Label::of("Who knows?"), None);
    }

    #[test]
    fn letters_are_read_as_written() {
        for label in Label::ALL {
            assert_eq!(Label::of_letter(&label.letter().to_string()), Some(label));
        }
        assert_eq!(Label::of_letter("X"), None);
        assert_eq!(Label::of_letter("DE"), None);
    }
}
