# SPDX-License-Identifier: MIT
# nix-build packaging/nix
{ pkgs ? import <nixpkgs> { } }:

pkgs.stdenv.mkDerivation {
  pname = "prudence";
  version = "0.3.0-dev";
  src = pkgs.lib.cleanSource ../..;

  outputs = [ "out" "dev" "doc" ];
  nativeBuildInputs = [ pkgs.cmake pkgs.python3 ];
  buildInputs = [ pkgs.libsystemtap pkgs.valgrind ];

  # The tools are scripts for python3.
  postFixup = ''
    patchShebangs $out/bin
  '';

  meta = {
    description = "A memory allocator for programs that defer their frees";
    license = pkgs.lib.licenses.mit;
    platforms = [ "x86_64-linux" "aarch64-linux" ];
  };
}
