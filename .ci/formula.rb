class Sublet < Formula
  desc "Lends your shell to AI agents, on your terms"
  homepage "@URL@"
  version "@VERSION@"
  license "MIT"

  on_macos do
    on_intel do
      url "@URL@/sublet-@VERSION@-darwin-amd64.tar.gz"
      sha256 "@darwin-amd64@"
    end
    on_arm do
      url "@URL@/sublet-@VERSION@-darwin-arm64.tar.gz"
      sha256 "@darwin-arm64@"
    end
    depends_on "bash" # macOS has 3.2
  end
  on_linux do
    on_intel do
      url "@URL@/sublet-@VERSION@-linux-amd64.tar.gz"
      sha256 "@linux-amd64@"
    end
    on_arm do
      url "@URL@/sublet-@VERSION@-linux-arm64.tar.gz"
      sha256 "@linux-arm64@"
    end
  end

  def install
    bin.install "sublet", "sublet-confine"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/sublet.bash" => "sublet"
    zsh_completion.install "completions/_sublet"
    fish_completion.install "completions/sublet.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/sublet --version")
  end
end
