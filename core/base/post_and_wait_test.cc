#include "core/base/post_and_wait.h"

#include <memory>
#include <thread>

#include "core/base/serial_executor.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

TEST(PostAndWaitTest, GivesWhatTheActionMadeOnTheExecutor) {
  SerialExecutor executor;
  int made = 0;
  PostAndWait(executor, [&made] { made = 1; });
  EXPECT_EQ(made, 1);
  const std::unique_ptr<int> moved =
      PostAndWait(executor, [&made] { return std::make_unique<int>(made + 1); });
  EXPECT_EQ(*moved, 2);
  EXPECT_NE(PostAndWait(executor, [] { return std::this_thread::get_id(); }),
            std::this_thread::get_id());
}

TEST(PostAndWaitTest, WaitsForWhatWasPostedBefore) {
  SerialExecutor executor;
  int made = 0;
  for (int i = 0; i < 1000; ++i) executor.Post([&made] { ++made; });
  EXPECT_EQ(PostAndWait(executor, [&made] { return made; }), 1000);
}

}  // namespace
}  // namespace planewise
