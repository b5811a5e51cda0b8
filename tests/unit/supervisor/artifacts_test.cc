#include "supervisor/artifacts.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <string>
#include <vector>

#include "runtime/sys/proc.h"
#include "supervisor/mime_type.h"
#include "tests/unit/ordinary_user.h"
#include "tests/unit/temp_tree.h"

namespace pyplaypen::supervisor {
namespace {

using testing::content_of;
using testing::status_of;
using testing::TempTree;
using testing::Who;

class ArtifactsTest : public testing::AsWho {};

INSTANTIATE_TEST_SUITE_P(, ArtifactsTest, ::testing::Values(Who::kSelf, Who::kOrdinary),
                         testing::who_name);

std::vector<std::string> paths(const Collected& collected) {
  std::vector<std::string> names;
  for (const Artifact& artifact : collected.artifacts) names.push_back(artifact.path);
  return names;
}

using Names = std::vector<std::string>;

TEST_P(ArtifactsTest, FindsRegularFilesInOrder) {
  run([] {
    const TempTree tree;
    tree.file("b.csv", "1,2\n");
    tree.directory("sub");
    tree.directory("sub/empty");
    tree.file("sub/日本.txt", "x");
    tree.file("a", "");
    const Collected found = collect(tree.fd(), Limits{});
    EXPECT_EQ(found.breach, "");
    EXPECT_EQ(paths(found), (Names{"a", "b.csv", "sub/日本.txt"}));
    EXPECT_EQ(found.raw_paths, paths(found));
    EXPECT_EQ(found.artifacts[2].name, "日本.txt");
    EXPECT_EQ(found.artifacts[1].mime_type, "text/csv");
    EXPECT_EQ(found.artifacts[1].bytes, 4U);
    EXPECT_FALSE(found.artifacts[2].path_bytes_base64);
    EXPECT_TRUE(found.skipped.empty());
  });
}

TEST_P(ArtifactsTest, AnEmptyWorkspaceLeavesNothing) {
  run([] {
    const TempTree tree;
    EXPECT_EQ(collect(tree.fd(), Limits{}).artifacts.size(), 0U);
    ::rmdir(tree.path().c_str());
    EXPECT_EQ(collect(tree.fd(), Limits{}).artifacts.size(), 0U) << "removed by the code";
  });
}

TEST_P(ArtifactsTest, DotFilesAndWhatIsBelowDotDirectoriesDoNotCount) {
  run([] {
    const TempTree tree;
    tree.file(".hidden", "x");
    tree.directory(".cache");
    tree.file(".cache/big", "x");
    tree.link("/etc/passwd", ".cache/link");
    tree.link("/etc/passwd", ".link");
    tree.directory("sub");
    tree.file("sub/.hidden", "x");
    tree.file("sub/seen", "x");
    const Collected found = collect(tree.fd(), Limits{});
    EXPECT_EQ(found.breach, "");
    EXPECT_EQ(paths(found), Names{"sub/seen"});
  });
}

TEST_P(ArtifactsTest, LinksAreABreach) {
  run([] {
    {
      const TempTree tree;
      tree.link("/etc/passwd", "out");
      EXPECT_EQ(collect(tree.fd(), Limits{}).breach,
                "'out' is a symbolic link; only regular files may be left behind");
    }
    {
      const TempTree tree;
      tree.link("nowhere", "dangling");
      EXPECT_NE(collect(tree.fd(), Limits{}).breach, "");
    }
    {
      const TempTree tree;
      tree.link("/", "directory");
      EXPECT_NE(collect(tree.fd(), Limits{}).breach, "");
    }
    {
      const TempTree tree;
      tree.file("one", "x");
      tree.hard_link(tree.at("one"), ".two");
      const Collected found = collect(tree.fd(), Limits{});
      EXPECT_EQ(
          found.breach,
          "'one' is a hard link, a file with 2 names; only regular files with one name may be "
          "left behind");
      EXPECT_TRUE(found.artifacts.empty());
    }
  });
}

TEST_P(ArtifactsTest, DevicesAreSkippedAndNeverOpened) {
  run([] {
    const TempTree tree;
    tree.file("a.txt", "x");
    tree.fifo("fifo");  // opening it for reading would wait for a writer
    tree.directory("sub");
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    tree.at("sub/socket").copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(socket);
    const Collected found = collect(tree.fd(), Limits{});
    EXPECT_EQ(found.breach, "");
    EXPECT_EQ(paths(found), Names{"a.txt"});
    EXPECT_EQ(found.skipped, (std::vector<Skipped>{{"fifo", "fifo"}, {"sub/socket", "socket"}}));
  });
}

TEST_P(ArtifactsTest, ManySkippedEntriesAreCounted) {
  run([] {
    const TempTree tree;
    for (int i = 0; i < 150; ++i) tree.fifo("f" + std::to_string(i));
    const Collected found = collect(tree.fd(), Limits{});
    EXPECT_EQ(found.skipped.size(), kMostSkipped);
    EXPECT_EQ(found.skipped_beyond, 50U);
  });
}

TEST_P(ArtifactsTest, NamesThatAreNotUtf8KeepTheirBytes) {
  run([] {
    const TempTree tree;
    tree.file("a\xff\xe6\x97z.csv", "1");
    tree.directory("\x80");
    tree.file("\x80/plain", "2");
    const Collected found = collect(tree.fd(), Limits{});
    ASSERT_EQ(paths(found), (Names{R"(a\xff\xe6\x97z.csv)", R"(\x80/plain)"}));
    EXPECT_EQ(found.raw_paths, (Names{"a\xff\xe6\x97z.csv", "\x80/plain"}));
    EXPECT_EQ(found.artifacts[0].name_bytes_base64, "Yf/ml3ouY3N2");
    EXPECT_EQ(found.artifacts[0].path_bytes_base64, "Yf/ml3ouY3N2");
    EXPECT_EQ(found.artifacts[0].mime_type, "text/csv");
    EXPECT_EQ(found.artifacts[1].name, "plain");
    EXPECT_EQ(found.artifacts[1].name_bytes_base64, std::nullopt);
    EXPECT_EQ(found.artifacts[1].path_bytes_base64, "gC9wbGFpbg==");
    const TempTree target;
    const Kept kept = move_to(tree.fd(), found, target.path(), "id");
    EXPECT_EQ(content_of(kept.root + "/a\xff\xe6\x97z.csv"), "1");
    EXPECT_EQ(content_of(kept.root + "/\x80/plain"), "2");
  });
}

TEST_P(ArtifactsTest, EachLimitIsABreach) {
  run([] {
    const TempTree tree;
    tree.file("one", "12345");
    tree.file("two", "12345");
    Limits limits;
    limits.file_bytes = 5;
    limits.artifact_count = 2;
    limits.artifact_bytes = 10;
    EXPECT_EQ(collect(tree.fd(), limits).breach, "");
    limits.artifact_bytes = 9;
    EXPECT_EQ(collect(tree.fd(), limits).breach,
              "the files left behind have more bytes together than limit artifact_bytes=9");
    limits.artifact_bytes = 10;
    limits.artifact_count = 1;
    EXPECT_EQ(collect(tree.fd(), limits).breach,
              "more files were left behind than limit artifact_count=1");
    limits.artifact_count = 2;
    limits.file_bytes = 4;
    EXPECT_NE(collect(tree.fd(), limits).breach.find("has 5 bytes, more than limit file_bytes=4"),
              std::string::npos);
  });
}

TEST_P(ArtifactsTest, ASparseFileIsJudgedByItsSizeAndNotRead) {
  run([] {
    const TempTree tree;
    tree.sized_file("sparse", uint64_t{1} << 40);
    EXPECT_EQ(collect(tree.fd(), Limits{}).breach,
              "'sparse' has 1099511627776 bytes, more than limit file_bytes=52428800");
    Limits limits;
    limits.file_bytes = limits.artifact_bytes = ~uint64_t{0};
    tree.sized_file("sparse2", uint64_t{1} << 40);
    EXPECT_EQ(collect(tree.fd(), limits).artifacts.size(), 2U);
  });
}

TEST_P(ArtifactsTest, ModesThatBarTheirOwnUserHideNothing) {
  run([] {
    const TempTree tree;
    tree.directory("barred");
    tree.directory("barred/below");
    tree.file("barred/below/f", "secret", 0000);
    sys::check(::chmod(tree.at("barred/below").c_str(), 0000), "chmod");
    sys::check(::chmod(tree.at("barred").c_str(), 0000), "chmod");
    sys::check(::chmod(tree.path().c_str(), 0000), "chmod");
    Collected found = collect(tree.fd(), Limits{});
    ASSERT_EQ(paths(found), Names{"barred/below/f"});
    hash_artifacts(tree.fd(), found);
    EXPECT_EQ(found.artifacts[0].sha256,
              "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b");
    const TempTree target;
    const Kept kept = move_to(tree.fd(), found, target.path(), "id");
    EXPECT_EQ(content_of(kept.root + "/barred/below/f"), "secret");
  });
}

TEST_P(ArtifactsTest, DeepTreesNeedNoMoreDescriptorsOrStack) {
  run([] {
    const TempTree tree(testing::fast_directory());
    tree.deep(3000, false);
    tree.file("top", "x");
    rlimit few{static_cast<rlim_t>(sys::open_fds().size() + 6), 0};
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    few.rlim_max = before.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &few);
    const Collected found = collect(tree.fd(), Limits{});
    ::setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_EQ(found.breach, "");
    EXPECT_EQ(paths(found), Names{"top"});
  });
}

TEST_P(ArtifactsTest, AFileTooDeepToBeOpenedIsABreach) {
  run([] {
    const TempTree tree(testing::fast_directory());
    tree.deep(3000, true);
    const std::string breach = collect(tree.fd(), Limits{}).breach;
    EXPECT_NE(breach.find("has a path of 6001 bytes, more than a system call takes"),
              std::string::npos);
    EXPECT_LT(breach.size(), 400U);
  });
}

TEST_P(ArtifactsTest, StopsAtTheFirstBreachHoweverManyEntriesThereAre) {
  run([] {
    const TempTree tree(testing::fast_directory());
    tree.many_files(20'000, "f");
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(collect(tree.fd(), Limits{}).breach,
              "more files were left behind than limit artifact_count=16");
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
  });
}

TEST_P(ArtifactsTest, EntriesThatAreNoArtifactsAreBounded) {
  run([] {
    const TempTree tree(testing::fast_directory());
    tree.many_files(static_cast<int>(kMostOtherEntries) + 1, ".f");
    EXPECT_EQ(collect(tree.fd(), Limits{}).breach,
              "more than 100000 directories, dot files and devices were left behind");
  });
}

TEST_P(ArtifactsTest, MovesTheFilesAndTheirDirectoriesOnly) {
  run([] {
    const TempTree tree;
    tree.file("a.txt", "one");
    tree.file(".dot", "x");
    tree.fifo("fifo");
    tree.directory("empty");
    tree.directory("sub");
    tree.directory("sub/deeper");
    tree.file("sub/deeper/b.txt", "two");
    tree.file("sub/c.txt", "three");
    const TempTree target;
    const Collected found = collect(tree.fd(), Limits{});
    const Kept kept = move_to(tree.fd(), found, target.at("made/here/"), "id-1");
    EXPECT_EQ(kept.problem, "");
    EXPECT_EQ(kept.root, target.at("made/here/id-1"));
    EXPECT_EQ(content_of(kept.root + "/a.txt"), "one");
    EXPECT_EQ(content_of(kept.root + "/sub/deeper/b.txt"), "two");
    EXPECT_EQ(content_of(kept.root + "/sub/c.txt"), "three");
    for (const char* name : {".dot", "fifo", "empty"})
      EXPECT_FALSE(target.exists("made/here/id-1/" + std::string(name))) << name;
    EXPECT_FALSE(tree.exists("a.txt")) << "renamed, not copied";
  });
}

TEST_P(ArtifactsTest, ModesAreMadeSane) {
  run([] {
    const TempTree tree;
    tree.file("set-user", "x", 06755);
    tree.file("unreadable", "x", 0000);
    tree.file("world-writable", "x", 0666);
    tree.file("script", "x", 0711);
    const TempTree target;
    const Kept kept = move_to(tree.fd(), collect(tree.fd(), Limits{}), target.path(), "id");
    const auto mode = [&](const char* name) {
      return status_of(kept.root + "/" + name).st_mode & 07777;
    };
    EXPECT_EQ(mode("set-user"), 0755U);
    EXPECT_EQ(mode("unreadable"), 0600U);
    EXPECT_EQ(mode("world-writable"), 0664U);
    EXPECT_EQ(mode("script"), 0711U);
  });
}

TEST_P(ArtifactsTest, NothingIsMadeForACallThatLeftNothing) {
  run([] {
    const TempTree tree;
    const TempTree target;
    const Kept kept = move_to(tree.fd(), collect(tree.fd(), Limits{}), target.at("root"), "id");
    EXPECT_EQ(kept.root, "");
    EXPECT_EQ(kept.problem, "");
    EXPECT_FALSE(target.exists("root"));
  });
}

TEST_P(ArtifactsTest, ARequestIdThatIsTakenIsRefused) {
  run([] {
    const TempTree tree;
    tree.file("a", "x");
    const TempTree target;
    target.directory("id");
    target.file("id/precious", "kept");
    const Kept kept = move_to(tree.fd(), collect(tree.fd(), Limits{}), target.path(), "id");
    EXPECT_EQ(kept.root, "");
    EXPECT_EQ(kept.problem,
              target.at("id") + " is there already; a request's artifacts go to a fresh directory");
    EXPECT_EQ(content_of(target.at("id/precious")), "kept");
    EXPECT_TRUE(tree.exists("a"));
    target.link("/", "id2");
    EXPECT_NE(move_to(tree.fd(), collect(tree.fd(), Limits{}), target.path(), "id2").problem, "");
  });
}

TEST_P(ArtifactsTest, ARequestIdMustBeOneName) {
  run([] {
    const TempTree tree;
    tree.file("a", "x");
    const Collected found = collect(tree.fd(), Limits{});
    const TempTree target;
    for (const std::string& id :
         {std::string(), std::string("."), std::string(".."), std::string("a/b"),
          std::string("../up"), std::string("a\0b", 3), std::string(256, 'x')})
      EXPECT_NE(move_to(tree.fd(), found, target.path(), id).problem, "") << id;
    EXPECT_NE(keep_under(tree.fd(), found, target.path(), "../up").problem, "");
    EXPECT_TRUE(tree.exists("a"));
  });
}

TEST_P(ArtifactsTest, KeepsUnderAFreshName) {
  run([] {
    const TempTree target;
    std::vector<std::string> roots;
    for (int i = 0; i < 3; ++i) {
      const TempTree tree;
      tree.file("a", std::to_string(i));
      const Kept kept = keep_under(tree.fd(), collect(tree.fd(), Limits{}), target.path(), "id");
      EXPECT_EQ(kept.problem, "");
      EXPECT_EQ(content_of(kept.root + "/a"), std::to_string(i));
      EXPECT_EQ(status_of(kept.root).st_mode & 07777, 0700U);
      roots.push_back(kept.root);
    }
    EXPECT_EQ(roots[0], target.at("pyplaypen-artifacts-id"));
    EXPECT_TRUE(roots[1].starts_with(roots[0] + "-"));
    EXPECT_NE(roots[1], roots[2]);
  });
}

TEST_P(ArtifactsTest, AFailureLeavesNothingBehindAndNoDescriptorOpen) {
  run([] {
    const TempTree tree;
    tree.file("a", "x");
    tree.file("b", "x");
    const Collected found = collect(tree.fd(), Limits{});
    ::unlink(tree.at("b").c_str());
    const TempTree target;
    const std::vector<int> before = sys::open_fds();
    EXPECT_THROW(move_to(tree.fd(), found, target.path(), "id"), sys::Error);
    EXPECT_FALSE(target.exists("id"));
    EXPECT_EQ(sys::open_fds(), before);
  });
}

TEST_P(ArtifactsTest, ALinkPutInAFilesPlaceIsNotFollowed) {
  run([] {
    const TempTree tree;
    tree.directory("sub");
    tree.file("sub/a", "x");
    Collected found = collect(tree.fd(), Limits{});
    const TempTree elsewhere;
    elsewhere.file("a", "not the call's");
    ::unlink(tree.at("sub/a").c_str());
    ::rmdir(tree.at("sub").c_str());
    tree.link(elsewhere.path(), "sub");
    const TempTree target;
    EXPECT_THROW(hash_artifacts(tree.fd(), found), sys::Error);
    EXPECT_THROW(move_to(tree.fd(), found, target.path(), "id"), sys::Error);
    EXPECT_TRUE(elsewhere.exists("a"));
    ::unlink(tree.at("sub").c_str());
    tree.directory("sub");
    tree.link(elsewhere.at("a"), "sub/a");
    EXPECT_THROW(move_to(tree.fd(), found, target.path(), "id"), sys::Error);
  });
}

TEST(ArtifactsOnTwoFileSystems, AreCopied) {
  struct stat shm;
  struct stat tmp;
  if (::stat("/dev/shm", &shm) != 0 || ::stat("/tmp", &tmp) != 0 || shm.st_dev == tmp.st_dev ||
      ::access("/dev/shm", W_OK) != 0)
    GTEST_SKIP() << "needs /dev/shm on another file system than /tmp";
  const std::string root = "/dev/shm/pyplaypen-test-" + std::to_string(::getpid());
  const TempTree tree;
  tree.directory("sub");
  tree.file("sub/a", std::string(1'000'000, 'x'), 06700);
  const Kept kept = move_to(tree.fd(), collect(tree.fd(), Limits{}), root, "id");
  EXPECT_EQ(content_of(kept.root + "/sub/a"), std::string(1'000'000, 'x'));
  EXPECT_EQ(status_of(kept.root + "/sub/a").st_mode & 07777, 0700U);
  sys::remove_tree(AT_FDCWD, root);
}

TEST(ArtifactsAsRoot, BelongToTheOwnerOfTheirRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give files away";
  const TempTree tree;
  tree.directory("sub");
  tree.file("sub/a", "x", 04755);
  for (const char* name : {"sub", "sub/a"})
    sys::check(::chown(tree.at(name).c_str(), testing::kOrdinaryUser, testing::kOrdinaryUser),
               "chown");
  const TempTree target;
  target.directory("root");
  sys::check(::chown(target.at("root").c_str(), 1234, 5678), "chown");
  const Kept kept = move_to(tree.fd(), collect(tree.fd(), Limits{}), target.at("root"), "id");
  for (const char* name : {"", "/sub", "/sub/a"}) {
    const struct stat status = status_of(kept.root + name);
    EXPECT_EQ(status.st_uid, 1234U) << name;
    EXPECT_EQ(status.st_gid, 5678U) << name;
    EXPECT_EQ(status.st_mode & 07000, 0U) << name;
  }
}

TEST(ArtifactsAsRoot, KeptOnesAreOutOfReachOfLaterCalls) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give files away";
  const TempTree tree;
  tree.file("a", "x");
  sys::check(::chown(tree.at("a").c_str(), testing::kOrdinaryUser, testing::kOrdinaryUser),
             "chown");
  const TempTree target;
  const Kept kept = keep_under(tree.fd(), collect(tree.fd(), Limits{}), target.path(), "id");
  EXPECT_EQ(status_of(kept.root).st_uid, 0U);
  EXPECT_EQ(status_of(kept.root + "/a").st_uid, 0U);
}

TEST(ArtifactsAsRoot, AnotherFileSystemIsABreach) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to mount";
  const TempTree tree;
  tree.directory("mounted");
  if (::mount("none", tree.at("mounted").c_str(), "tmpfs", 0, nullptr) != 0)
    GTEST_SKIP() << "needs CAP_SYS_ADMIN, to mount";
  const Collected found = collect(tree.fd(), Limits{});
  ::umount(tree.at("mounted").c_str());
  EXPECT_EQ(found.breach, "'mounted' is on another file system");
}

TEST(MimeType, GoesByTheExtension) {
  EXPECT_EQ(mime_type_of("data.csv"), "text/csv");
  EXPECT_EQ(mime_type_of("DATA.JSON"), "application/json");
  EXPECT_EQ(mime_type_of("a.b.PNG"), "image/png");
  EXPECT_EQ(mime_type_of("t.parquet"), "application/vnd.apache.parquet");
  EXPECT_EQ(mime_type_of("data.csv.gz"), "application/gzip");
  for (const char* unknown : {"plain", "x.", "x.unknown", "x.csvx", "csv", ""})
    EXPECT_EQ(mime_type_of(unknown), "application/octet-stream") << unknown;
}

}  // namespace
}  // namespace pyplaypen::supervisor
