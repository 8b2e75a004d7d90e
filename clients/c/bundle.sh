#!/usr/bin/env bash
# Copies programs or libraries and the shared libraries they need into one folder,
# which can then be moved to another machine.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: bundle.sh FILE… FOLDER

Copies each FILE and every shared library it needs to FOLDER and lets them find
each other there (run path $ORIGIN). The C library and the C++ library stay the
system's: a process can have only one of each, and the program that loads ours has
chosen it already.
TEXT
}

if (($# < 2)) || [[ $1 == --help ]]; then
  usage
  [[ ${1:-} == --help ]] && exit 0
  exit 2
fi

files=("${@:1:$#-1}")
folder=${*: -1}
system='^(libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s|ld-linux.*)\.so'

mkdir -p "$folder"
cp -f "${files[@]}" "$folder"
# ldd lists what a file needs, and what that needs, with where it is found.
ldd "${files[@]}" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
  while read -r name path; do
    if ! [[ $name =~ $system ]]; then cp -fL "$path" "$folder/$name"; fi
  done
for file in "$folder"/*; do
  if [[ $(head -c 4 "$file") == $'\x7fELF' ]]; then
    chmod u+w "$file"
    patchelf --set-rpath '$ORIGIN' "$file"
  fi
done
