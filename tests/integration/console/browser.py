"""Debian's Chromium, without a window, driven over its own protocol; and a shop's cluster to look at."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.waiting import wait_until

SIZE = (1440, 1000)


def require_chromium() -> tuple[str, str]:
    """Chromium and its driver; the test is skipped where they are missing."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no chromium here: apt-get install chromium chromium-driver")
    return browser, driver


class Browser:
    """One window. Elements are waited for: pages draw what they have, and data comes after."""

    def __init__(self, driver: webdriver.Chrome, address: str) -> None:
        self.driver = driver
        self.address = address.rstrip("/")

    def open(self, path: str) -> None:
        """An address of the console; the page's heading must come."""
        self.driver.get(self.address + path)
        self.find("h1, .empty, .counter")

    def find(self, selector: str) -> WebElement:
        """The first element that is shown."""
        found: list[WebElement] = []

        def look() -> bool:
            with contextlib.suppress(StaleElementReferenceException):
                found[:] = [
                    each for each in self.driver.find_elements(By.CSS_SELECTOR, selector) if each.is_displayed()
                ]
            return bool(found)

        wait_until(look, f"{selector} at {self.driver.current_url}")
        return found[0]

    def click(self, selector: str) -> None:
        """Click what can be clicked; pages draw anew at times, and the new element is as good."""

        def done() -> bool:
            try:
                element = self.driver.find_element(By.CSS_SELECTOR, selector)
                if not element.is_enabled():
                    return False
                element.click()
            except (NoSuchElementException, StaleElementReferenceException):
                return False
            return True

        wait_until(done, f"click {selector} at {self.driver.current_url}")

    def button(self, text: str, inside: str = "body") -> None:
        """Click a button by its words."""

        def done() -> bool:
            with contextlib.suppress(StaleElementReferenceException):
                for element in self.driver.find_elements(By.CSS_SELECTOR, f"{inside} button, {inside} a"):
                    if element.text.strip() == text and element.is_displayed() and element.is_enabled():
                        element.click()
                        return True
            return False

        wait_until(done, f"button {text!r} at {self.driver.current_url}")

    def type(self, name: str, text: str, inside: str = "dialog[open]") -> None:
        """Fill a field."""
        element = self.find(f"{inside} [name={name}]")
        if element.tag_name != "select":
            element.clear()
        element.send_keys(text)

    def sees(self, text: str, selector: str = "body") -> None:
        """Wait for a text."""
        wait_until(lambda: text in self.text(selector), f"{text!r} in {selector} at {self.driver.current_url}")

    def text(self, selector: str = "body") -> str:
        """What is shown."""
        try:
            return self.driver.find_element(By.CSS_SELECTOR, selector).text
        except (NoSuchElementException, StaleElementReferenceException):
            return ""

    def complaints(self) -> list[str]:
        """What the browser's log says since it was last asked."""
        log: list[dict[str, Any]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in log if entry["level"] in ("SEVERE", "WARNING")]

    def resize(self, width: int, height: int) -> None:
        """As on a screen of this size: windows themselves are never narrower than 500."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def shoot(self, path: Path) -> None:
        """Keep a picture."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(path))


@contextlib.contextmanager
def browser_at(address: str) -> Iterator[Browser]:
    """A browser with a fresh profile."""
    chromium, driver = require_chromium()
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--no-sandbox",  # as root, in a container
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--lang=en",
        f"--window-size={SIZE[0]},{SIZE[1]}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    window = webdriver.Chrome(options, Service(driver))
    try:
        yield Browser(window, address)
    finally:
        window.quit()
