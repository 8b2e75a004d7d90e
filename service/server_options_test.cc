#include "service/server_options.h"

#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// What the environment holds in a test.
std::map<std::string, std::string>& Environment() {
  static auto* environment = new std::map<std::string, std::string>;
  return *environment;
}

std::optional<std::string> FromTestEnvironment(const std::string& name) {
  const auto found = Environment().find(name);
  if (found == Environment().end()) return std::nullopt;
  return found->second;
}

ServerCommand Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "planewised");
  return ParseServerCommand(static_cast<int>(arguments.size()), arguments.data(),
                            FromTestEnvironment);
}

class ServerOptionsTest : public testing::Test {
 protected:
  void SetUp() override { Environment().clear(); }

  // A configuration file of this test.
  std::string File(const std::string& text) {
    const std::string path =
        testing::TempDir() + "/" +
        testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml";
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(ServerOptionsTest, DefaultsAreAUnixSocketAndMostOfTheMemory) {
  const ServerCommand command = Parse({});
  ASSERT_TRUE(command.run) << command.text;
  ASSERT_EQ(command.run->listen.size(), 1u);
  EXPECT_EQ(command.run->listen[0].kind, ListenAddress::Kind::kUnix);
  EXPECT_GT(command.run->memory_limit_bytes, 0);
  EXPECT_GE(command.run->threads, 1);
  EXPECT_THAT(command.run->roots, testing::IsEmpty());
}

TEST_F(ServerOptionsTest, FlagsAreRead) {
  const ServerCommand command =
      Parse({"--listen", "unix:///run/p/p.sock", "--listen", "127.0.0.1:0", "--token-file", "/t",
             "--port-file", "/p", "--store", "/s", "--root", "/a", "--root", "/b",
             "--memory-limit", "8GiB", "--threads", "3", "--session-timeout", "90s",
             "--sessions-max", "7", "--log-level", "warn"});
  ASSERT_TRUE(command.run) << command.text;
  EXPECT_EQ(command.run->listen[0].ToString(), "unix:///run/p/p.sock");
  EXPECT_EQ(command.run->listen[1].ToString(), "127.0.0.1:0");
  EXPECT_EQ(command.run->token_file, "/t");
  EXPECT_EQ(command.run->port_file, "/p");
  EXPECT_EQ(command.run->store, "/s");
  EXPECT_THAT(command.run->roots, ElementsAre("/a", "/b"));
  EXPECT_EQ(command.run->memory_limit_bytes, int64_t{8} << 30);
  EXPECT_EQ(command.run->threads, 3);
  EXPECT_EQ(command.run->session.timeout, absl::Seconds(90));
  EXPECT_EQ(command.run->session.sessions_max, 7);
  EXPECT_EQ(command.run->log_level, "warn");
}

TEST_F(ServerOptionsTest, FlagWinsOverEnvironmentOverFile) {
  const std::string file = File(
      "memory-limit = \"1GiB\"\n"
      "store = \"/file\"\n"
      "threads = 5\n"
      "root = [\"/x\", \"/y\"]\n");
  Environment() = {{"PLANEWISE_MEMORY_LIMIT", "2GiB"}, {"PLANEWISE_STORE", "/environment"}};
  const ServerCommand command = Parse({"--config", file.c_str(), "--memory-limit", "3GiB"});
  ASSERT_TRUE(command.run) << command.text;
  EXPECT_EQ(command.run->memory_limit_bytes, int64_t{3} << 30);
  EXPECT_EQ(command.run->store, "/environment");
  EXPECT_EQ(command.run->threads, 5);
  EXPECT_THAT(command.run->roots, ElementsAre("/x", "/y"));
}

TEST_F(ServerOptionsTest, ListsInTheEnvironmentAreSeparatedByCommas) {
  Environment() = {{"PLANEWISE_ROOT", "/a,/b"}};
  EXPECT_THAT(Parse({}).run->roots, ElementsAre("/a", "/b"));
}

struct Mistake {
  const char* name;
  std::vector<const char*> arguments;
  std::vector<const char*> says;
};

const Mistake kMistakes[] = {
    {"no unit", {"--memory-limit", "8"}, {"--memory-limit", "GiB", "command line"}},
    {"nothing at all", {"--memory-limit", "0B"}, {"at least 1B"}},
    {"every address", {"--listen", "0.0.0.0:50051"}, {"0.0.0.0", "TLS", "loopback"}},
    {"another host", {"--listen", "10.0.0.7:50051"}, {"10.0.0.7", "TLS"}},
    {"no port", {"--listen", "127.0.0.1"}, {"no port"}},
    {"a port too high", {"--listen", "127.0.0.1:65536"}, {"65535"}},
    {"a relative socket", {"--listen", "unix://p.sock"}, {"not absolute"}},
    {"TCP without a token", {"--listen", "127.0.0.1:0"}, {"--token-file"}},
    {"port file without TCP", {"--port-file", "/p"}, {"--port-file", "TCP"}},
    {"no threads", {"--threads", "0"}, {"--threads", "at least 1"}},
    {"no duration", {"--session-timeout", "10"}, {"--session-timeout", "10m"}},
    {"never", {"--drain-grace", "inf"}, {"--drain-grace"}},
    {"no level", {"--log-level", "loud"}, {"--log-level", "debug"}},
    {"unknown flag", {"--stroe", "/s"}, {"--stroe"}},
    {"twice", {"--store", "/a", "--store", "/b"}, {"--store"}},
    {"no such file", {"--config", "/no/such.toml"}, {"/no/such.toml"}},
};

TEST_F(ServerOptionsTest, MistakesAreNamedAndExitWithTwo) {
  for (const Mistake& mistake : kMistakes) {
    SCOPED_TRACE(mistake.name);
    const ServerCommand command = Parse(mistake.arguments);
    EXPECT_FALSE(command.run);
    EXPECT_EQ(command.exit_code, 2);
    for (const char* text : mistake.says) EXPECT_THAT(command.text, HasSubstr(text));
  }
}

TEST_F(ServerOptionsTest, MistakesOfTheEnvironmentNameTheVariable) {
  Environment() = {{"PLANEWISE_THREADS", "many"}};
  EXPECT_THAT(Parse({}).text, AllOf(HasSubstr("PLANEWISE_THREADS"), HasSubstr("many")));
}

TEST_F(ServerOptionsTest, UnknownKeysOfAFileAreRefused) {
  const std::string file = File("memory_limit = \"1GiB\"\n");
  const ServerCommand command = Parse({"--config", file.c_str()});
  EXPECT_EQ(command.exit_code, 2);
  EXPECT_THAT(command.text, AllOf(HasSubstr("memory_limit"), HasSubstr(file)));
}

TEST_F(ServerOptionsTest, ValidateConfigPrintsWhatIsInEffect) {
  const ServerCommand command = Parse({"--validate-config", "--memory-limit", "64MiB"});
  EXPECT_FALSE(command.run);
  EXPECT_EQ(command.exit_code, 0);
  EXPECT_THAT(command.text, HasSubstr("memory-limit = 64MiB\n"));
  EXPECT_EQ(Parse({"--validate-config", "--threads", "0"}).exit_code, 2);
}

TEST_F(ServerOptionsTest, HelpShowsEverySettingAndVersionTheVersion) {
  const ServerCommand help = Parse({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const auto& [name, value] : Parse({}).run->Settings()) {
    EXPECT_THAT(help.text, HasSubstr("--" + name));
  }
  EXPECT_THAT(Parse({"--version"}).text, HasSubstr("planewised"));
}

TEST_F(ServerOptionsTest, SettingsShowEffectiveValues) {
  const auto settings = Parse({"--root", "/a", "--root", "/b"}).run->Settings();
  EXPECT_THAT(settings, Contains(Pair("root", "/a,/b")));
  EXPECT_THAT(settings, Contains(Pair("session-timeout", "10m")));
}

}  // namespace
}  // namespace planewise
