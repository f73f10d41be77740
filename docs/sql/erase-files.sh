#!/bin/sh
# Removes erased people from the files of `read --output contacts`: see docs/erasure.md. Run it in the folder above `contacts`.
# It reads everyone again. Only when that is complete do the new files take the place of the older ones.
set -eu
# No day may be left out, and every day is counted.
export CONTACT_INTELLIGENCE_IGNORE_MISSING_DAYS='[]' CONTACT_INTELLIGENCE_VERIFY_COUNTS=true

read_people() {
  source-contact-intelligence read --config config.json --output contacts --stream people --summary erasure.json "$@"
}
stop() {
  echo "Nothing was removed: $1" >&2
  exit 1
}

if echo "${CONTACT_INTELLIGENCE_START_DATE-}" | cat - config.json | grep -Eq '"start_date" *: *"[0-9]+d"|^[0-9]+d$'; then
  stop "start_date is a number of days, so who was found before that would go too. Set a date, or none"
fi

read_people # fails if the key is that of another account
read_people --full-refresh
for full in contacts/people/full-*; do :; done # the last has the largest number
[ -n "$(ls "$full")" ] || stop "the service shows no people"

# People who moved while they were read come with the next run.
for try in 1 2 last; do
  read_people
  if grep -q '"missing_days": \[\]' erasure.json && grep -q '"recheck": \[\]' erasure.json &&
    ! grep -q '"time_limit_reached": true' erasure.json; then break; fi
  [ "$try" != last ] || stop "some days must be read again. Run this script again when fewer people move"
done

mv "$full"/* contacts/people/
rmdir "$full"
for older in contacts/people/*; do
  number=${older#contacts/people/*-}
  if [ "${number%%-*}" -lt "${full##*-}" ]; then rm -r "$older"; fi
done
