# SPDX-License-Identifier: MIT
"""Pages of the site in a headless Chromium, light and dark, narrow and wide. For tests.

They are skipped where chromium, its driver or selenium is not installed, or fail with CI in the environment.
"""

import os
import shutil
import tempfile
import unittest

SECONDS = 300  # until a browser is given up

# [text, class, contrast] of what a reader sees with less than 4.5:1; code whose lines are cut; the width of the page, if it is wider
# than the window.
SCRIPT = """
document.getAnimations().forEach(animation => animation.finish()); // colors that change with the scheme
const channels = text => text.match(/[\\d.]+/g).map(Number);
const kept = compute => {
    const known = new Map();
    return element => known.has(element) ? known.get(element) : known.set(element, compute(element)).get(element);
};
const over = ([r, g, b, a = 1], under) => [r, g, b].map((one, at) => one * a + under[at] * (1 - a));
const behind = kept(element => element ? over(channels(getComputedStyle(element).backgroundColor), behind(element.parentElement)) : [255, 255, 255]);
const opacity = kept(element => element ? getComputedStyle(element).opacity * opacity(element.parentElement) : 1);
const visible = (element, [r, g, b, a = 1]) => [r, g, b, a * opacity(element)];
const luminance = color => color.map(one => one / 255).map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const seen = new Map();
while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || seen.has(element) || !element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    if (!element.getClientRects().length || element.closest("script, style, noscript")) continue;
    const under = behind(element);
    const [dark, light] = [luminance(over(visible(element, channels(getComputedStyle(element).color)), under)), luminance(under)].sort((a, b) => a - b);
    seen.set(element, (light + 0.05) / (dark + 0.05));
}
localStorage.clear(); // where the theme keeps the scheme of this page for all others
return {
    faint: [...seen].filter(([, contrast]) => contrast < 4.5).slice(0, 9)
        .map(([element, contrast]) => [element.textContent.trim().slice(0, 40), element.className, contrast]),
    looked: seen.size,
    cut: [...document.querySelectorAll("pre code")].filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.textContent.slice(0, 40)),
    wide: document.documentElement.scrollWidth > innerWidth + 1 ? document.documentElement.scrollWidth : 0,
    scheme: document.body.dataset.mdColorScheme,
};
"""


def missing():
    """Returns the name of a missing program, or None."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed (Debian: python3-selenium)"
    return next((f"{one} is not installed (Debian: {package})" for one, package in (("chromium", "chromium"), ("chromedriver", "chromium-driver"))
                 if not shutil.which(one)), None)


class Browser:
    """A context: with Browser() as browser: browser.look(...)"""

    def __enter__(self):
        if why := missing():
            if os.environ.get("CI"):
                raise AssertionError(why)
            raise unittest.SkipTest(why)
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        self.folder = tempfile.TemporaryDirectory()
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for one in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", f"user-data-dir={self.folder.name}"):
            options.add_argument(f"--{one}")
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_page_load_timeout(SECONDS)
        self.driver.set_script_timeout(SECONDS)
        return self

    def __exit__(self, *_):
        self.driver.quit()
        self.folder.cleanup()

    def show(self, dark, width):
        """Pages from now on."""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})

    def look(self, page):
        self.driver.get(page.as_uri())
        return self.driver.execute_script(SCRIPT)

    def search(self, words, shown=None):
        """The addresses of what the search finds in the page that is open, best first; they name the words, or `shown`."""
        from selenium.webdriver.common.by import By
        from selenium.webdriver.support.wait import WebDriverWait
        field = self.driver.find_element(By.CSS_SELECTOR, "input[name=query]")
        self.driver.execute_script("document.querySelector('#__search').checked = true; arguments[0].focus(); arguments[0].value = ''", field)
        field.send_keys(words)
        return WebDriverWait(self.driver, SECONDS).until(lambda driver: driver.execute_script("""
            const found = [...document.querySelectorAll(".md-search-result__list a")].map(one => one.href);
            return found.some(one => new URL(one).searchParams.get("h") === arguments[0]) && found;
        """, shown or words))
