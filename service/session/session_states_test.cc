#include "service/session/session_states.h"

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

using Row = std::tuple<SessionState, SessionEvent, SessionState>;

const std::map<std::string, SessionState> kStates = {
    {"–", SessionState::kNone},
    {"attached", SessionState::kAttached},
    {"detached", SessionState::kDetached},
    {"closed", SessionState::kClosed},
};

// How the page words each event.
const std::map<std::string, SessionEvent> kEvents = {
    {"`open` without `session_id`", SessionEvent::kOpen},
    {"the call `Open`", SessionEvent::kOpenCall},
    {"`open` with `session_id` and `resume_token`", SessionEvent::kResume},
    {"`open` on another stream with the token", SessionEvent::kResumeElsewhere},
    {"`operation`, `chunk`, `acknowledge`, `heartbeat`", SessionEvent::kFrame},
    {"the calls `Execute`, `Heartbeat`", SessionEvent::kCall},
    {"`open` again on the same stream", SessionEvent::kOpenAgain},
    {"stream breaks, or ends with an error", SessionEvent::kStreamEnds},
    {"`close`, the call `Close`", SessionEvent::kClose},
    {"time-out", SessionEvent::kTimeout},
    {"the daemon shuts down", SessionEvent::kShutdown},
    {"any call with its id", SessionEvent::kAnyCall},
};

// The rows of the table below "### Streams"; a row of two states is two.
std::set<Row> RowsOfThePage() {
  std::ifstream file("proto/README.md");
  EXPECT_TRUE(file.good());
  std::set<Row> rows;
  std::string line;
  bool in_section = false;
  int table_lines = 0;
  while (std::getline(file, line)) {
    if (line == "### Streams") in_section = true;
    if (!in_section) continue;
    if (line.empty() || line[0] != '|') {
      if (table_lines > 0) break;
      continue;
    }
    if (++table_lines <= 2) continue;  // head and rule
    std::vector<std::string> cells = absl::StrSplit(line, '|');
    EXPECT_EQ(cells.size(), 6u) << line;
    for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
    EXPECT_TRUE(kEvents.contains(cells[2])) << "event not known to the test: " << cells[2];
    for (const std::string& from : std::vector<std::string>(absl::StrSplit(cells[1], ", "))) {
      rows.insert({kStates.at(from), kEvents.at(cells[2]), kStates.at(cells[4])});
    }
  }
  return rows;
}

TEST(SessionStatesTest, TheTableIsTheOneUsersRead) {
  std::set<Row> table;
  for (const SessionTransition& transition : kSessionTransitions) {
    table.insert({transition.from, transition.event, transition.to});
  }
  EXPECT_EQ(table.size(), std::size(kSessionTransitions)) << "a transition is listed twice";
  EXPECT_EQ(table, RowsOfThePage());
}

TEST(SessionStatesTest, AnEventLeadsToOneState) {
  std::set<std::pair<SessionState, SessionEvent>> seen;
  for (const SessionTransition& transition : kSessionTransitions) {
    EXPECT_TRUE(seen.insert({transition.from, transition.event}).second);
  }
}

TEST(SessionStatesTest, WhatTheTableLacksIsNotAllowed) {
  EXPECT_EQ(NextState(SessionState::kDetached, SessionEvent::kFrame), std::nullopt);
  EXPECT_EQ(NextState(SessionState::kClosed, SessionEvent::kResume), std::nullopt);
  EXPECT_EQ(NextState(SessionState::kAttached, SessionEvent::kStreamEnds),
            SessionState::kDetached);
}

}  // namespace
}  // namespace planewise
