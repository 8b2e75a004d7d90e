#include "core/checkpoint/hf_directory.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/memory_file_system.h"
#include "core/base/posix_file_system.h"
#include "core/checkpoint/safetensors_writer.h"
#include "gmock/gmock.h"
#include "tests/testing/scratch_directory.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kShard1[] = "model-00001-of-00002.safetensors";
constexpr char kShard2[] = "model-00002-of-00002.safetensors";

class HfDirectoryTest : public testing::Test {
 protected:
  HfDirectoryTest() {
    PW_EXPECT_OK(fs_.MakeDirectory("/hf"));
    WriteText("config.json", "{\"hidden_size\": 2}");
  }

  void WriteText(const std::string& name, absl::string_view text) {
    PW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, fs_.Create("/hf/" + name));
    PW_ASSERT_OK(file->Append(BytesOf(text)));
  }
  // Tensors U8 of one dimension.
  void WriteTensors(const std::string& file,
                    const std::vector<std::pair<std::string, std::string>>& tensors) {
    std::vector<SafetensorsContent> contents;
    for (const auto& [name, text] : tensors) {
      contents.push_back(
          {{name, DType::kU8, {static_cast<int64_t>(text.size())}}, BytesOf(text)});
    }
    PW_ASSERT_OK(WriteSafetensors(fs_, "/hf/" + file, contents));
  }
  // A sound model of two shards.
  void WriteTwoShards() {
    WriteTensors(kShard1, {{"a", "aaaa"}});
    WriteTensors(kShard2, {{"b", "bb"}, {"c", "cc"}});
    WriteText("model.safetensors.index.json",
              absl::StrCat(R"({"weight_map":{"a":")", kShard1, R"(","b":")", kShard2,
                           R"(","c":")", kShard2, R"("}})"));
  }
  absl::StatusOr<HfDirectory> Open(const HfOpenOptions& options = {}) {
    return HfDirectory::Open(fs_, "/hf", options);
  }
  static std::string Read(const HfDirectory& directory, absl::string_view name) {
    const HfTensor* tensor = directory.Find(name);
    if (tensor == nullptr) return "no such tensor";
    std::string text(static_cast<size_t>(tensor->length), '?');
    PW_EXPECT_OK(directory.Read(*tensor, 0, MutableBytesOf(text)));
    return text;
  }

  MemoryFileSystem fs_;
};

TEST_F(HfDirectoryTest, ReadsASingleFile) {
  WriteTensors("model.safetensors", {{"b", "bbb"}, {"a", "aa"}});
  PW_ASSERT_OK_AND_ASSIGN(const HfDirectory directory, Open());
  EXPECT_EQ(directory.config_json(), "{\"hidden_size\": 2}");
  ASSERT_EQ(directory.tensors().size(), 2u);
  EXPECT_EQ(directory.tensors()[0].name, "a");
  EXPECT_EQ(directory.tensors()[1].file, "model.safetensors");
  EXPECT_EQ(Read(directory, "a"), "aa");
  EXPECT_EQ(Read(directory, "b"), "bbb");
  EXPECT_EQ(directory.Find("c"), nullptr);
  EXPECT_THAT(directory.notes(), ElementsAre());
}

TEST_F(HfDirectoryTest, ReadsShards) {
  WriteTwoShards();
  PW_ASSERT_OK_AND_ASSIGN(const HfDirectory directory, Open());
  EXPECT_EQ(directory.tensors().size(), 3u);
  EXPECT_EQ(Read(directory, "a"), "aaaa");
  EXPECT_EQ(Read(directory, "c"), "cc");
  std::string part(1, '?');
  PW_ASSERT_OK(directory.Read(*directory.Find("b"), 1, MutableBytesOf(part)));
  EXPECT_EQ(part, "b");
  EXPECT_THAT(directory.Read(*directory.Find("b"), 2, MutableBytesOf(part)),
              HasReason(Reason::kInvalidCheckpoint, HasSubstr("\"b\" has 2 bytes")));
}

// Field report 43: weights came from one and scales from the other where both were
// read.
TEST_F(HfDirectoryTest, BothSingleFileAndIndexIsAmbiguousUnlessTold) {
  WriteTwoShards();
  WriteTensors("model.safetensors", {{"a", "stale"}});
  EXPECT_THAT(Open(), HasReason(Reason::kInvalidCheckpoint,
                                AllOf(HasSubstr("\"/hf\""), HasSubstr("both model.safetensors"))));
  PW_ASSERT_OK_AND_ASSIGN(const HfDirectory sharded, Open({HfWeights::kSharded, {}}));
  EXPECT_EQ(Read(sharded, "a"), "aaaa");
  EXPECT_THAT(sharded.notes(), ElementsAre("file model.safetensors is ignored"));
  PW_ASSERT_OK_AND_ASSIGN(const HfDirectory single, Open({HfWeights::kSingleFile, {}}));
  EXPECT_EQ(Read(single, "a"), "stale");
  EXPECT_EQ(single.tensors().size(), 1u);
}

TEST_F(HfDirectoryTest, MissingPartsAreNamed) {
  EXPECT_THAT(HfDirectory::Open(fs_, "/no", {}), HasReason(Reason::kNotFound, HasSubstr("/no")));
  EXPECT_THAT(Open(), HasReason(Reason::kInvalidCheckpoint,
                                HasSubstr("model.safetensors or model.safetensors.index.json "
                                          "is required and missing")));
  WriteText("pytorch_model.bin", "pickle");
  EXPECT_THAT(Open(), HasReason(Reason::kInvalidCheckpoint, HasSubstr("never read")));
  WriteTensors("model.safetensors", {{"a", "a"}});
  EXPECT_THAT(Open({HfWeights::kSharded, {}}),
              HasReason(Reason::kInvalidCheckpoint, HasSubstr("index.json is required")));
  PW_ASSERT_OK(fs_.Remove("/hf/config.json"));
  EXPECT_THAT(Open(), HasReason(Reason::kInvalidCheckpoint,
                                HasSubstr("config.json is required and missing")));
}

TEST_F(HfDirectoryTest, AMissingShardIsNamed) {
  WriteTwoShards();
  PW_ASSERT_OK(fs_.Remove(absl::StrCat("/hf/", kShard2)));
  EXPECT_THAT(Open(), HasReason(Reason::kInvalidCheckpoint,
                                AllOf(HasSubstr(kShard2), HasSubstr("is missing"))));
}

// A loader that mapped short shards read zeros.
TEST_F(HfDirectoryTest, ATruncatedShardIsNamed) {
  WriteTwoShards();
  std::string bytes = fs_.Contents(absl::StrCat("/hf/", kShard1));
  bytes.resize(bytes.size() - 2);
  fs_.SetContents(absl::StrCat("/hf/", kShard1), bytes);
  EXPECT_THAT(Open(), HasReason(Reason::kInvalidCheckpoint,
                                AllOf(HasSubstr(kShard1), HasSubstr("tensor \"a\""))));
}

TEST_F(HfDirectoryTest, AnIndexedTensorThatItsShardLacksIsNamed) {
  WriteTensors("x.safetensors", {{"a", "a"}});
  WriteText("model.safetensors.index.json",
            R"({"weight_map":{"a":"x.safetensors","mtp.fc.weight":"x.safetensors"}})");
  EXPECT_THAT(Open(), HasReason(Reason::kInvalidCheckpoint,
                                AllOf(HasSubstr("\"mtp.fc.weight\""), HasSubstr("x.safetensors"),
                                      HasSubstr("does not hold it"))));
}

TEST_F(HfDirectoryTest, ATensorInTwoShardsIsRefused) {
  WriteTensors("x.safetensors", {{"a", "a"}});
  WriteTensors("y.safetensors", {{"a", "other"}, {"b", "b"}});
  WriteText("model.safetensors.index.json",
            R"({"weight_map":{"a":"x.safetensors","b":"y.safetensors"}})");
  EXPECT_THAT(Open(), HasReason(Reason::kInvalidCheckpoint,
                                HasSubstr("\"a\" is in both x.safetensors and y.safetensors")));
}

TEST_F(HfDirectoryTest, UnindexedTensorsAreReadAndOtherFilesIgnoredWithANote) {
  WriteTensors("x.safetensors", {{"a", "a"}, {"mtp", "m"}});
  WriteTensors("consolidated.safetensors", {{"a", "other"}});
  WriteText("model.safetensors.index.json", R"({"weight_map":{"a":"x.safetensors"}})");
  PW_ASSERT_OK_AND_ASSIGN(const HfDirectory directory, Open());
  EXPECT_EQ(Read(directory, "mtp"), "m");
  EXPECT_EQ(Read(directory, "a"), "a");
  EXPECT_THAT(directory.notes(),
              ElementsAre("tensor \"mtp\" of x.safetensors is not in the index; it is read all "
                          "the same",
                          "file consolidated.safetensors is ignored"));
}

TEST_F(HfDirectoryTest, AHugeConfigIsRefused) {
  WriteTensors("model.safetensors", {{"a", "a"}});
  fs_.SetContents("/hf/config.json", std::string(kHfConfigBytesMax + 1, ' '));
  EXPECT_THAT(Open(), HasReason(Reason::kLimitExceeded, HasSubstr("config.json")));
}

TEST(HfDirectoryLinkTest, LinksMayNotLeadOutOfTheRoots) {
  FileSystem& fs = PosixFileSystem();
  const ScratchDirectory scratch;
  PW_ASSERT_OK_AND_ASSIGN(const std::string base, fs.Resolve(scratch.path()));
  for (const char* name : {"/root", "/root/hf", "/root/blobs", "/outside"}) {
    PW_ASSERT_OK(fs.MakeDirectory(base + name));
  }
  PW_ASSERT_OK(fs.Create(base + "/root/hf/config.json"));
  PW_ASSERT_OK(WriteSafetensors(fs, base + "/root/blobs/b1", {}));
  PW_ASSERT_OK(WriteSafetensors(fs, base + "/outside/b1", {}));
  const HfOpenOptions options = {HfWeights::kOnlyOne, {base + "/root"}};
  const std::string link = base + "/root/hf/model.safetensors";

  ASSERT_EQ(symlink("../blobs/b1", link.c_str()), 0);
  PW_EXPECT_OK(HfDirectory::Open(fs, base + "/root/hf", options));

  PW_ASSERT_OK(fs.Remove(link));
  ASSERT_EQ(symlink("../../outside/b1", link.c_str()), 0);
  EXPECT_THAT(HfDirectory::Open(fs, base + "/root/hf", options),
              HasReason(Reason::kPathOutsideRoots, HasSubstr(link)));
  PW_EXPECT_OK(HfDirectory::Open(fs, base + "/root/hf", {}));

  PW_ASSERT_OK(fs.Remove(link));
  ASSERT_EQ(symlink("../blobs/none", link.c_str()), 0);
  EXPECT_THAT(HfDirectory::Open(fs, base + "/root/hf", {}),
              HasReason(Reason::kInvalidCheckpoint, HasSubstr("leads nowhere")));
}

}  // namespace
}  // namespace planewise
