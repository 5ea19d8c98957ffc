# SPDX-License-Identifier: MIT
# ctest: long (python and node have many small objects, too)
"""Ghostscript: generated PostScript becomes the same pictures as without us, and a PDF that shows them."""

from support import Program

PAGE = r"""
%!PS
/w 420 def /h 560 def
<< /PageSize [w h] >> setpagedevice
1 1 {pages} {{ /page exch def
  0 1 {shapes} {{ /i exch def
    gsave
    i 7919 mul page add w mod  i 104729 mul h mod translate
    i 13 mul 360 mod rotate
    i 97 mul 100 mod 100 div  i 31 mul 100 mod 100 div  page 10 mod 10 div setrgbcolor
    newpath 0 0 moveto 30 10 60 40 i 50 mod 80 curveto closepath
    i 3 mod 0 eq {{ fill }} {{ i 5 mod 1 add setlinewidth stroke }} ifelse
    grestore
  }} for
  /Helvetica findfont page 7 mod 10 add scalefont setfont
  1 1 20 {{ /line exch def 0 setgray 20 line 25 mul moveto
    (page ) show page 10 string cvs show ( line ) show line 10 string cvs show }} for
  /table 2000 dict def
  1 1 2000 {{ dup table exch 3 -1 roll 50 string cvs put }} for
  << /ShadingType 2 /ColorSpace /DeviceRGB /Coords [0 0 w 60] /Extend [true true]
     /Function << /FunctionType 2 /Domain [0 1] /C0 [1 0 0] /C1 [0 0 1] /N 1 >> >>
  gsave 0 0 w 20 rectclip shfill grestore
  showpage
}} for
"""


class Ghostscript(Program):
    packages = ("ghostscript",)
    wanted = ("gs",)
    least = 10000

    def draw(self, run, source, folder):
        """The pages as pictures."""
        place = self.make_folder(f"data/{folder}")
        run("gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-sDEVICE=png16m", "-r72", "-dTextAlphaBits=4",
            "-dGraphicsAlphaBits=4", f"-sOutputFile={place}/%03d.png", f"--permit-file-read={source}",
            "-f", source)
        return [path.read_bytes() for path in sorted(place.iterdir())]

    def test_pictures(self):
        pages = self.pick(4, 25)
        source = self.script("pages.ps", PAGE.lstrip().format(pages=pages, shapes=self.pick(3000, 8000)))
        ours, plain = self.draw(self.run_program, source, "ours"), self.draw(self.run_plain, source, "plain")
        self.assertEqual(len(ours), pages)
        self.assertTrue(ours == plain, "the pictures differ")
        document = self.data / "pages.pdf"
        self.run_program("gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-sDEVICE=pdfwrite",
                         f"-sOutputFile={document}", "-f", source)
        self.assertTrue(self.draw(self.run_program, document, "pdf")
                        == self.draw(self.run_plain, document, "pdf-plain"), "the PDF is drawn otherwise")
        self.note(f"{pages} pages the same, also from the PDF")
