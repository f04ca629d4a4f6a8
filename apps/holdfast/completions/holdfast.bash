# bash completion for holdfast. Source it, or install it as
# /usr/share/bash-completion/completions/holdfast.

# Names of locks in use; those that need no quoting, which is nearly all.
_holdfast_names() {
  local url=() i
  for ((i = 1; i < cword - 1; i++)); do
    if [[ ${words[i]} == --url ]]; then
      url=(--url "${words[i + 1]}")
    fi
  done
  "${words[0]}" ls --names "${url[@]}" 2>/dev/null | grep -E '^[A-Za-z0-9_.:/@%+=,-]+$'
}

# COMP_WORDS cuts names at ':' and '='; people cut at blanks.
_holdfast_words() {
  local line=${COMP_LINE:0:COMP_POINT}
  read -ra words <<<"$line"
  [[ $line == *[[:blank:]] ]] && words+=('')
  cword=$((${#words[@]} - 1))
}

# After `--` the line belongs to the command that runs under the lock.
_holdfast_command() {
  local i
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${COMP_WORDS[i]} == -- ]] && break
  done
  if declare -F _command_offset >/dev/null; then
    _command_offset $((i + 1))
  elif [[ ${words[cword - 1]} == -- ]]; then
    mapfile -t COMPREPLY < <(compgen -c -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}

_holdfast_reply() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    [[ -n $line ]] && COMPREPLY+=("$line")
  done < <(compgen -W "$1" -- "$current")
  # readline replaces only what stands after the last ':' of the word.
  if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
    COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*:}"}"}")
  fi
}

_holdfast() {
  local words cword current previous command='' i
  local commands='run ls show watch release task init doctor bench torture version'
  local common='--url --json --help'
  _holdfast_words
  current=${words[cword]}
  previous=${words[cword - 1]}

  for ((i = 1; i < cword; i++)); do
    case ${words[i]} in
      --url) ((i++)) ;;
      -*) ;;
      *)
        command=${words[i]}
        break
        ;;
    esac
  done
  local at=$i

  if [[ $command == run || $command == task ]]; then
    for ((i = at + 1; i < cword; i++)); do
      if [[ ${words[i]} == -- ]]; then
        _holdfast_command
        return
      fi
    done
  fi

  case $previous in
    --url) _holdfast_reply 'sqlite: memory:' && return ;;
    --ttl | --max-hold | --at-most | --at-least) _holdfast_reply '10s 30s 1m 5m 1h' && return ;;
    --wait | -w) _holdfast_reply '0 10s 1m forever' && return ;;
    --once-per) _holdfast_reply '50m 23h' && return ;;
    --grace | --interval | --rest) _holdfast_reply '100ms 500ms 1s 5s' && return ;;
    --permits) _holdfast_reply '1/2 1/3 1/4 1/8' && return ;;
    --on-lost) _holdfast_reply 'term ignore' && return ;;
    --scenario) _holdfast_reply 'U1 U8 U32 U128 A32 C16 Q100 H4 P2 W100 W1000 W1000n W50p L100k' && return ;;
    --faults) _holdfast_reply 'all process network none kill stop partition partition-to partition-from delay reset cut refuse swallow' && return ;;
    --label | --seconds | --minutes | --seed | --processes | --threads | --min-grants | --min-faults) return ;;
  esac

  local options names=''
  if [[ $command == task && $previous == task && $current != -* ]]; then
    _holdfast_reply 'run ls forget'
    return
  fi
  case $command in
    run)
      options='--also --wait --no-wait --ttl --shared --permits --on-lost --max-hold --no-renew --grace --follow --rest --label --'
      ;;
    watch) options='--interval' ;;
    release) options='--force --now' ;;
    task) options='--at-most --at-least --once-per --label --' ;;
    init) options='--print' ;;
    bench) options='--scenario --seconds --threads --names --waiters' ;;
    torture)
      options='--seconds --minutes --seed --faults --processes --threads --min-grants --min-faults --at-most --ttl --timeline --events'
      ;;
    ls | show | doctor | version) options='' ;;
    '')
      _holdfast_reply "$commands $common --version"
      return
      ;;
    *) return ;;
  esac
  if [[ $current != -* && $command =~ ^(run|ls|show|watch|release)$ ]]; then
    names=$(_holdfast_names)
  fi
  if [[ $current == -* || -z $names ]]; then
    _holdfast_reply "$options $common"
  else
    _holdfast_reply "$names"
  fi
}

complete -F _holdfast holdfast
