//! Completions of bash, zsh and fish.

use super::{Values, takes_directories, values, verb_options, verb_values};
use crate::cli::{VERBS, Verb};
use crate::help::{self, Shown, VERSION_HELP};
use msprof_agent_core::options::{Group, TABLE};
use std::fmt::Write;

const GENERATED: &str = "Made from the tables of options by `make manual`; do not edit.";

const BASH: &str = r#"
# Words that begin like the current one; behind an equals sign no blank.
_msprof_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
    [[ ${COMPREPLY[*]-} == *= ]] && compopt -o nospace 2>/dev/null
}

_msprof() {
    local cur=${COMP_WORDS[COMP_CWORD]} option= verb= i=1 rest
    COMPREPLY=()
    while ((i < COMP_CWORD)); do
        case ${COMP_WORDS[i]} in
            -h | -V | @FLAGS@ | --*=*) ;;
            --) verb=program; break ;;
            # The shell cuts --name=value at the sign.
            --*)
                option=${COMP_WORDS[i]}
                [[ ${COMP_WORDS[i + 1]-} == = ]] && ((i += 1))
                ((i += 1))
                ((i < COMP_CWORD)) && option=
                ;;
            *)
                if ((i == 1)); then
                    case ${COMP_WORDS[i]} in
                        @VERBS@) verb=${COMP_WORDS[i]} ;;
                    esac
                fi
                # Behind a verb there is no program.
                [[ -z $verb ]] && verb=program && break
                ;;
        esac
        ((i += 1))
    done
    [[ $cur == = ]] && cur=
    if [[ -z $option && $verb != program && $cur == --*=* ]]; then
        option=${cur%%=*}
        cur=${cur#*=}
    fi
    rest=${cur##*,}
    case $verb:$option in
@VALUES@
        *:?*) ;;
@VERB_OPTIONS@
        program:*) compopt -o default 2>/dev/null ;;
        :)
            if [[ $cur == -* ]]; then
                _msprof_words "@OPTIONS@" "$cur"
            else
                compopt -o filenames 2>/dev/null
                ((COMP_CWORD == 1)) && mapfile -t COMPREPLY < <(compgen -W "@VERB_WORDS@" -- "$cur")
                mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- "$cur"; compgen -f -- "$cur")
            fi
            ;;
    esac
}
complete -F _msprof msprof
"#;

/// The options with these values, as alternatives of a `case`.
fn group(of: impl Fn(&Values) -> bool) -> String {
    let names = options().map(|option| option.name);
    let heads = names
        .filter(|name| of(&values(name)))
        .map(|name| format!("*:--{name}"));
    heads.collect::<Vec<_>>().join(" | ")
}

fn options() -> impl Iterator<Item = Shown> {
    help::sections()
        .into_iter()
        .flat_map(|section| section.options)
}

fn verb_names(separator: &str) -> String {
    let names: Vec<_> = VERBS.iter().map(|verb| verb.name).collect();
    names.join(separator)
}

/// For bash.
pub fn bash() -> String {
    let mut cases = String::new();
    let filenames = "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen";
    let mut case = |heads: &str, action: &str| {
        let _ = writeln!(cases, "        {heads}) {action} ;;");
    };
    for verb in VERBS {
        for (word, _) in verb_options(verb) {
            let name = word.trim_start_matches('-').trim_end_matches('=');
            let is_file = |values: Values| matches!(values, Values::File);
            if word.ends_with('=') && is_file(verb_values(verb, name)) {
                let head = format!("{}:--{name}", verb.name);
                case(&head, &format!("{filenames} -f -- \"$cur\")"));
            }
        }
    }
    for option in options() {
        let head = format!("*:--{}", option.name);
        match values(option.name) {
            Values::Words(words) => {
                let words = words.join(" ");
                case(
                    &head,
                    &format!("mapfile -t COMPREPLY < <(compgen -W \"{words}\" -- \"$cur\")"),
                );
            }
            Values::List(words) => {
                let words = words.join(" ");
                let list = format!("compgen -P \"${{cur%\"$rest\"}}\" -W \"{words}\" -- \"$rest\"");
                case(&head, &format!("mapfile -t COMPREPLY < <({list})"));
            }
            _ => {}
        }
    }
    case(
        &group(|values| matches!(values, Values::Directory)),
        &format!("{filenames} -d -- \"$cur\")"),
    );
    case(
        &group(|values| matches!(values, Values::File)),
        &format!("{filenames} -f -- \"$cur\")"),
    );
    case(
        &group(|values| matches!(values, Values::Pids)),
        "mapfile -t COMPREPLY < <(compgen -P \"${cur%\"$rest\"}\" -W \"$(cd /proc && echo [0-9]*)\" -- \"$rest\")",
    );
    let mut of_verbs = String::new();
    for verb in VERBS {
        let words: Vec<_> = verb_words(verb).into_iter().map(|(word, _)| word).collect();
        let words = words.join(" ");
        if takes_directories(verb) {
            let _ = writeln!(
                of_verbs,
                "        {}:)\n            if [[ $cur == -* ]]; then\n                _msprof_words \"{words}\" \"$cur\"\n            else\n                {filenames} -d -- \"$cur\")\n            fi\n            ;;",
                verb.name
            );
        } else {
            let _ = writeln!(
                of_verbs,
                "        {}:) _msprof_words \"{words}\" \"$cur\" ;;",
                verb.name
            );
        }
    }
    let mut flags: Vec<String> = VERBS
        .iter()
        .flat_map(verb_words)
        .map(|(word, _)| word)
        .filter(|word| !word.ends_with('='))
        .collect();
    flags.push("--version".to_owned());
    flags.sort();
    flags.dedup();
    let names: Vec<_> = options()
        .map(|option| format!("--{}=", option.name))
        .collect();
    let body = BASH
        .replace("@VERBS@", &verb_names(" | "))
        .replace("@FLAGS@", &flags.join(" | "))
        .replace("@VERB_WORDS@", &verb_names(" "))
        .replace("@OPTIONS@", &(names.join(" ") + " --help --version"))
        .replace("@VALUES@\n", &cases)
        .replace("@VERB_OPTIONS@\n", &of_verbs);
    format!("# bash completion of msprof. {GENERATED}\n{body}")
}

/// Everything that may stand behind a verb and begins with a dash.
fn verb_words(verb: &Verb) -> Vec<(String, &'static str)> {
    let own = verb_options(verb).into_iter();
    let mut words: Vec<_> = own
        .map(|(name, help)| (format!("--{name}"), help))
        .collect();
    if matches!(verb.name, "start" | "record") {
        let options = TABLE.iter().filter(|spec| spec.group != Group::Refused);
        words.extend(options.map(|option| (format!("--{}=", option.name), option.help)));
    }
    words.push(("--help".to_owned(), "show the options"));
    words
}

const ZSH: &str = r#"
_msprof_program() {
    if ((CURRENT == 1)); then
        _alternative 'verbs:command:((@VERBS@))' 'commands:program:_command_names -e' 'files:program:_files -g "*(*)"'
    else
        _normal
    fi
}

_msprof() {
    local curcontext=$curcontext
    case $words[2] in
@OF_VERBS@    esac
    _arguments -S \
@OPTIONS@        '(- *)'{-h,--help}'[show the options]' \
        '(- *)'{-V,--version}'[@VERSION_HELP@]' \
        '*:: :_msprof_program'
}

_msprof "$@"
"#;

/// What zsh offers as a value; `unknown` says what is wanted where nothing can be offered.
fn zsh_action(values: Values, unknown: &str) -> String {
    match values {
        Values::Words(words) => format!("value:({})", words.join(" ")),
        Values::List(words) => format!("values:_sequence compadd - {}", words.join(" ")),
        Values::Directory => "directory:_files -/".to_owned(),
        Values::File => "file:_files".to_owned(),
        Values::Pids => "process:_sequence _pids".to_owned(),
        Values::Unknown => format!("{unknown}:"),
    }
}

/// For zsh.
pub fn zsh() -> String {
    let quoted = |text: &str| {
        let text = text.replace('\\', "\\\\").replace('\'', "'\\''");
        text.replace('[', "\\[")
            .replace(']', "\\]")
            .replace(':', "\\:")
    };
    let mut specs = String::new();
    for option in options() {
        let action = zsh_action(values(option.name), &quoted(&option.valid));
        let help = quoted(option.help);
        let _ = writeln!(specs, "        '--{}=[{help}]:{action}' \\", option.name);
    }
    let mut of_verbs = String::new();
    for verb in VERBS {
        let _ = writeln!(of_verbs, "        {})", verb.name);
        of_verbs += "            shift words\n            ((CURRENT--))\n            _arguments";
        for (word, help) in verb_words(verb) {
            let name = word.trim_start_matches('-').trim_end_matches('=');
            let value = match word.ends_with('=') {
                true => format!(":{}", zsh_action(verb_values(verb, name), "value")),
                false => String::new(),
            };
            let _ = write!(of_verbs, " '{word}[{}]{value}'", quoted(help));
        }
        if takes_directories(verb) {
            of_verbs += " '*:directory:_files -/'";
        }
        of_verbs += "\n            return\n            ;;\n";
    }
    let verbs: Vec<_> = VERBS
        .iter()
        .map(|verb| format!("{}\\:\"{}\"", verb.name, verb.help.replace(':', "\\:")))
        .collect();
    let body = ZSH
        .replace("@VERBS@", &verbs.join(" "))
        .replace("@OF_VERBS@", &of_verbs)
        .replace("@OPTIONS@", &specs)
        .replace("@VERSION_HELP@", &quoted(VERSION_HELP));
    format!("#compdef msprof\n# {GENERATED}\n{body}")
}

/// What fish offers as a value.
fn fish_action(values: Values) -> String {
    match values {
        Values::Words(words) | Values::List(words) => format!("-x -a '{}'", words.join(" ")),
        Values::Directory => "-x -a '(__fish_complete_directories)'".to_owned(),
        Values::File => "-r".to_owned(),
        Values::Pids => "-x -a '(__fish_complete_pids)'".to_owned(),
        Values::Unknown => "-x".to_owned(),
    }
}

/// For fish.
pub fn fish() -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
    let seen = format!("__fish_seen_subcommand_from {}", verb_names(" "));
    let mut text = format!("# fish completion of msprof. {GENERATED}\n\n");
    for verb in VERBS {
        let _ = writeln!(
            text,
            "complete -c msprof -n __fish_use_subcommand -a {} -d '{}'",
            verb.name,
            quoted(verb.help)
        );
        for (word, help) in verb_words(verb) {
            let name = word.trim_start_matches('-').trim_end_matches('=');
            let value = match word.ends_with('=') {
                true => format!(" {}", fish_action(verb_values(verb, name))),
                false => String::new(),
            };
            let _ = writeln!(
                text,
                "complete -c msprof -n '__fish_seen_subcommand_from {}' -l {name}{value} -d '{}'",
                verb.name,
                quoted(help)
            );
        }
        let directories = match takes_directories(verb) {
            true => " -a '(__fish_complete_directories)'",
            false => "",
        };
        let _ = writeln!(
            text,
            "complete -c msprof -n '__fish_seen_subcommand_from {}' -f{directories}",
            verb.name
        );
    }
    for option in options() {
        let action = fish_action(values(option.name));
        let _ = writeln!(
            text,
            "complete -c msprof -n 'not {seen}' -l {} {action} -d '{}'",
            option.name,
            quoted(option.help)
        );
    }
    for (short, long, help) in [
        ("h", "help", "show the options"),
        ("V", "version", VERSION_HELP),
    ] {
        let _ = writeln!(
            text,
            "complete -c msprof -n 'not {seen}' -s {short} -l {long} -d '{}'",
            quoted(help)
        );
    }
    text
}
